package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

// clock is how far the time of samples and evaluations is ahead of the real one. Whatever stores samples or evaluates
// rules holds it for reading, so that it is never set forward in the middle.
type clock struct {
	sync.RWMutex
	ahead time.Duration
}

// evaluate has Prometheus evaluate a group of rules at the time of the samples.
func (s *Server) evaluate(ctx context.Context, group *rules.Group, at time.Time) {
	s.clock.RLock()
	defer s.clock.RUnlock()
	rules.DefaultEvalIterationFunc(ctx, group, at.Add(s.clock.ahead))
}

// atPresent fills in the time of a query that names none.
func (s *Server) atPresent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/query" && r.FormValue("time") == "" {
			s.clock.RLock()
			now := time.Now().Add(s.clock.ahead)
			s.clock.RUnlock()
			r.Form.Set("time", strconv.FormatFloat(float64(now.UnixMilli())/1000, 'f', 3, 64))
		}
		next.ServeHTTP(w, r)
	})
}

// scraped is the storage as the scraping sees it.
type scraped struct{ server *Server }

// Appender implements storage.Appendable.
func (s scraped) Appender(ctx context.Context) storage.Appender {
	s.server.clock.RLock()
	return &scrapedAppender{Appender: s.server.database.Appender(ctx), clock: &s.server.clock}
}

// scrapedAppender stores samples by the clock, which it holds until its end. Targets of the lab have samples and nothing
// else that has a time.
type scrapedAppender struct {
	storage.Appender
	clock *clock
}

// Append implements storage.Appender.
func (a *scrapedAppender) Append(ref storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	return a.Appender.Append(ref, l, t+a.clock.ahead.Milliseconds(), v)
}

// AppendHistogram implements storage.Appender.
func (a *scrapedAppender) AppendHistogram(ref storage.SeriesRef, l labels.Labels, t int64, h *histogram.Histogram,
	f *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return a.Appender.AppendHistogram(ref, l, t+a.clock.ahead.Milliseconds(), h, f)
}

// Commit implements storage.Appender.
func (a *scrapedAppender) Commit() error {
	defer a.clock.RUnlock()
	return a.Appender.Commit()
}

// Rollback implements storage.Appender.
func (a *scrapedAppender) Rollback() error {
	defer a.clock.RUnlock()
	return a.Appender.Rollback()
}
