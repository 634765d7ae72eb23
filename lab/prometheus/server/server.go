// Package server runs the real Prometheus: its storage, discovery of Kubernetes objects, scraping, rules,
// alerts and HTTP API, combined as in Prometheus' own main function. There is no remote storage, no receiver of
// alerts, and no web interface of Prometheus, because its assets are in no Go module. The clock can be set
// forward; see Server.Forward.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	registry "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // the only discovery that ServiceMonitors need
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/logging"
)

// Defaults of Prometheus' flags.
const (
	maxSamples   = 50_000_000
	queryTimeout = 2 * time.Minute
	lookback     = 5 * time.Minute
	resendDelay  = time.Minute
)

// Server is a Prometheus. It is idle until Apply has set a configuration.
type Server struct {
	log       *slog.Logger
	registry  *registry.Registry
	database  *tsdb.DB
	engine    *promql.Engine
	discovery *discovery.Manager
	scraping  *scrape.Manager
	rules     *rules.Manager
	url       *url.URL
	stop      context.CancelFunc
	clock     clock

	applying sync.Mutex // held while the rules are replaced or evaluated ahead
	mu       sync.Mutex
	config   config.Config
}

// Options configure a Prometheus.
type Options struct {
	// Dir is the directory of the samples.
	Dir string
	// URL is the URL of the server for users.
	URL *url.URL
	Log *slog.Logger
	// DiscoveryInterval is the delay until discovered targets are scraped; Prometheus' 5 seconds when 0.
	DiscoveryInterval time.Duration
}

// New creates a Prometheus and opens its storage. The caller then calls Run.
func New(o Options) (*Server, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{log: o.Log, registry: registry.NewRegistry(), url: o.URL, stop: stop, config: config.DefaultConfig}
	err := s.open(o)
	if err == nil {
		if err = s.manage(ctx, o); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.database.Close())
	}
	stop()
	return nil, err
}

// open opens the storage and creates the query engine.
func (s *Server) open(o Options) (err error) {
	if s.database, err = tsdb.Open(o.Dir, s.log, s.registry, tsdb.DefaultOptions(), nil); err != nil {
		return fmt.Errorf("open the storage of Prometheus in %s: %w", o.Dir, err)
	}
	s.engine = promql.NewEngine(promql.EngineOpts{Logger: s.log, Reg: s.registry, MaxSamples: maxSamples, Timeout: queryTimeout,
		LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Duration(s.current().GlobalConfig.EvaluationInterval).Milliseconds() },
	})
	return nil
}

// manage creates the components that run continuously.
func (s *Server) manage(ctx context.Context, o Options) error {
	metrics, err := discovery.CreateAndRegisterSDMetrics(s.registry)
	if err != nil {
		return fmt.Errorf("make the metrics of the discovery: %w", err)
	}
	named := []func(*discovery.Manager){discovery.Name("scrape")}
	if o.DiscoveryInterval > 0 {
		named = append(named, discovery.Updatert(o.DiscoveryInterval))
	}
	if s.discovery = discovery.NewManager(ctx, s.log, s.registry, metrics, named...); s.discovery == nil {
		return errors.New("make the manager of the discovery: see the log")
	}
	options := &scrape.Options{DiscoveryReloadInterval: model.Duration(o.DiscoveryInterval)}
	s.scraping, err = scrape.NewManager(options, s.log, logging.NewJSONFileLogger, scraped{s}, s.registry)
	if err != nil {
		return fmt.Errorf("make the manager of the scraping: %w", err)
	}
	s.rules = rules.NewManager(&rules.ManagerOptions{
		Appendable: s.database, Queryable: s.database, QueryFunc: rules.EngineQueryFunc(s.engine, s.database),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, // the API shows the alerts
		Context:    ctx, ExternalURL: s.url, Registerer: s.registry, Logger: s.log, ResendDelay: resendDelay,
		DefaultRuleQueryOffset: func() time.Duration { return time.Duration(s.current().GlobalConfig.RuleQueryOffset) },
	})
	return nil
}

// Run scrapes and evaluates until the context is done, and closes the storage.
func (s *Server) Run(ctx context.Context) error {
	var group sync.WaitGroup
	failures := make(chan error, 2)
	group.Go(func() { failures <- s.discovery.Run() })
	group.Go(func() { failures <- s.scraping.Run(s.discovery.SyncCh()) })
	group.Go(s.rules.Run)
	<-ctx.Done()
	s.rules.Stop()
	s.scraping.Stop()
	s.stop()
	group.Wait()
	close(failures)
	err := s.database.Close()
	for failure := range failures {
		if !errors.Is(failure, context.Canceled) {
			err = errors.Join(err, failure)
		}
	}
	return err
}

// Apply applies a configuration, and the rules in the files that it references. The samples are kept.
func (s *Server) Apply(configuration []byte) error {
	c, err := config.Load(string(configuration), s.log)
	if err != nil {
		return fmt.Errorf("read the configuration of Prometheus: %w", err)
	}
	found := map[string]discovery.Configs{}
	for _, job := range c.ScrapeConfigs {
		found[job.JobName] = job.ServiceDiscoveryConfigs
	}
	s.mu.Lock()
	s.config = *c
	s.mu.Unlock()
	files, err := ruleFiles(c.RuleFiles)
	if err != nil {
		return err
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	err = errors.Join(s.scraping.ApplyConfig(c), s.discovery.ApplyConfig(found), s.rules.Update(
		time.Duration(c.GlobalConfig.EvaluationInterval), files, c.GlobalConfig.ExternalLabels, s.url.String(), s.evaluate))
	if err != nil {
		return fmt.Errorf("apply the configuration of Prometheus: %w", err)
	}
	return nil
}

func (s *Server) current() config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// Handler serves Prometheus' HTTP API. The default time of queries is the time of the samples.
func (s *Server) Handler() http.Handler { return s.atPresent(s.api()) }
