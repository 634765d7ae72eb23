package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/grafana/regexp" // required by the API
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/notifications"
	api "github.com/prometheus/prometheus/web/api/v1"
)

// The limits of remote reads, with the defaults of Prometheus' flags. Remote reads are not used here.
const (
	remoteSamples, remoteConcurrency, remoteFrame = 5e7, 10, 1 << 20
)

// api returns the read-only part of Prometheus' HTTP API under /api/v1.
func (s *Server) api() http.Handler {
	always := func(f http.HandlerFunc) http.HandlerFunc { return f }
	v1 := api.NewAPI(s.engine, s.database, nil, s.database,
		func(context.Context) api.ScrapePoolsRetriever { return s.scraping },
		func(context.Context) api.TargetRetriever { return s.scraping },
		func(context.Context) api.AlertmanagerRetriever { return noAlertmanagers{} },
		s.current, map[string]string{},
		api.GlobalURLOptions{ListenAddress: s.url.Host, Host: s.url.Host, Scheme: s.url.Scheme},
		always, statistics{s.database}, s.database.Dir(), false, s.log,
		func(context.Context) api.RulesRetriever { return s.rules },
		remoteSamples, remoteConcurrency, remoteFrame, false, regexp.MustCompile("^$"),
		func() (api.RuntimeInfo, error) { return api.RuntimeInfo{}, nil }, &api.PrometheusVersion{},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false },
		s.registry, s.registry, nil, false, config.RemoteWriteProtoMsgs{}, false, false, false, false)
	router := route.New()
	v1.Register(router)
	return http.StripPrefix("/api/v1", router)
}

// noAlertmanagers is an empty list of Alertmanagers.
type noAlertmanagers struct{}

// Alertmanagers implements api.AlertmanagerRetriever.
func (noAlertmanagers) Alertmanagers() []*url.URL { return nil }

// DroppedAlertmanagers implements api.AlertmanagerRetriever.
func (noAlertmanagers) DroppedAlertmanagers() []*url.URL { return nil }

// statistics adapts the storage to the API.
type statistics struct{ *tsdb.DB }

// Stats implements api.TSDBAdminStats.
func (s statistics) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

// WALReplayStatus implements api.TSDBAdminStats. The log is replayed before the API is served.
func (statistics) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }

// ruleFiles returns the files that match the patterns, without duplicates.
func ruleFiles(patterns []string) (files []string, err error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find the rules %s: %w", pattern, err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
