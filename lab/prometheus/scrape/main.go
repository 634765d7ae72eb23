// Command scrape scrapes one target once with the scrape manager of Prometheus. It prints the samples, one per
// line, or the reason for missing samples, and then exits with status 1.
//
//	scrape <configuration with one job> <address>
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
)

// limit is the timeout of the target, including scrapes that are too slow for the job.
const limit = time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: scrape <configuration> <address>")
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	loaded, err := config.Load(string(content), log)
	if err != nil {
		return err
	}
	if len(loaded.ScrapeConfigs) != 1 {
		return fmt.Errorf("%s has %d jobs, not one", args[0], len(loaded.ScrapeConfigs))
	}
	samples := &appendable{}
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: model.Duration(10 * time.Millisecond)}, log, nil, samples,
		prometheus.NewRegistry())
	if err != nil {
		return err
	}
	if err := manager.ApplyConfig(loaded); err != nil {
		return err
	}
	job := loaded.ScrapeConfigs[0].JobName
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- map[string][]*targetgroup.Group{job: {{Source: "arguments",
		Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(args[1])}}}}}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(sets) }()
	err = wait(manager, job)
	manager.Stop()
	return errors.Join(err, <-ended, samples.print())
}

// wait waits for a scrape that was not too slow.
func wait(manager *scrape.Manager, job string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		for _, target := range manager.TargetsActive()[job] {
			switch last = target.LastError(); {
			case target.Health() == scrape.HealthGood:
				return nil
			case last != nil && !errors.Is(last, context.DeadlineExceeded):
				return last
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the target was not scraped in time"), last)
		case <-tick.C:
		}
	}
}

// appendable stores the samples of the first commit.
type appendable struct {
	mu        sync.Mutex
	committed []string
}

// Appender implements storage.Appendable.
func (a *appendable) Appender(context.Context) storage.Appender { return &appender{to: a} }

func (a *appendable) print() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := bufio.NewWriter(os.Stdout)
	for _, sample := range a.committed {
		fmt.Fprintln(out, sample)
	}
	return out.Flush()
}

// appender receives the samples of one scrape. These scrapes do not use the other methods of an appender.
type appender struct {
	storage.Appender
	to      *appendable
	samples []string
}

// Append implements storage.Appender.
func (a *appender) Append(_ storage.SeriesRef, l labels.Labels, _ int64, v float64) (storage.SeriesRef, error) {
	a.samples = append(a.samples, fmt.Sprintf("%s %v", l, v))
	return 0, nil
}

// Commit implements storage.Appender. When the manager stops, it writes stale markers: only the samples of the
// first scrape are kept.
func (a *appender) Commit() error {
	a.to.mu.Lock()
	defer a.to.mu.Unlock()
	if a.to.committed == nil {
		a.to.committed = a.samples
	}
	return nil
}

// Rollback implements storage.Appender.
func (*appender) Rollback() error { return nil }

// SetOptions implements storage.Appender.
func (*appender) SetOptions(*storage.AppendOptions) {}
