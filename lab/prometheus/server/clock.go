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

// clock is the offset of the time of samples and evaluations from the real time. Code that stores samples or
// evaluates rules holds the read lock, so that the offset never changes meanwhile.
type clock struct {
	sync.RWMutex
	ahead time.Duration
}

// evaluate evaluates a group of rules at the time of the samples.
func (s *Server) evaluate(ctx context.Context, group *rules.Group, at time.Time) {
	s.clock.RLock()
	defer s.clock.RUnlock()
	rules.DefaultEvalIterationFunc(ctx, group, at.Add(s.clock.ahead))
}

// atPresent adds the current time to a query without time.
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

// scraped is the storage for scrapes.
type scraped struct{ server *Server }

// Appender implements storage.Appendable.
func (s scraped) Appender(ctx context.Context) storage.Appender {
	s.server.clock.RLock()
	return &scrapedAppender{Appender: s.server.database.Appender(ctx), clock: &s.server.clock}
}

// scrapedAppender stores samples with the offset of the clock, and holds the lock until its end. Targets of the
// lab only have samples, and no other data with a time.
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
