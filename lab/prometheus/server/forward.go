package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

const (
	// pace is the scrape and evaluation interval of OpenShift's Prometheus.
	pace = 30 * time.Second
	// farthest is the limit that prevents a wrong request from filling the storage.
	farthest = 48 * time.Hour
)

// Forward only lets time pass: it sets the clock of samples and evaluations forward. Meanwhile, each recently
// scraped series receives a sample with the same value every 30 seconds, and Prometheus evaluates its rules at
// the same interval. Pending durations of alerts and range windows therefore pass without a wait. Targets are
// not affected: a value that is a duration, such as the remaining validity of a certificate, is constant. A
// value that is a time remains a time of the real clock.
func (s *Server) Forward(ctx context.Context, by time.Duration) error {
	if by <= 0 || by > farthest {
		return fmt.Errorf("set the clock forward by %s: it must be more than 0 and at most %s", by, farthest)
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.clock.Lock()
	defer s.clock.Unlock()
	begin := time.Now().Add(s.clock.ahead)
	found, err := s.standing(ctx, begin)
	if err != nil {
		return fmt.Errorf("set the clock forward by %s: %w", by, err)
	}
	groups, refs := s.rules.RuleGroups(), make([]storage.SeriesRef, len(found))
	for passed := pace; passed < by; passed += pace {
		at := begin.Add(passed)
		if err := s.repeat(ctx, found, refs, at); err != nil {
			return fmt.Errorf("set the clock forward by %s: %w", by, err)
		}
		for _, group := range groups {
			rules.DefaultEvalIterationFunc(ctx, group, at)
		}
	}
	s.clock.ahead += by
	return nil
}

// standing returns the current series of targets. Series of rules come from the evaluation.
func (s *Server) standing(ctx context.Context, now time.Time) (found promql.Vector, err error) {
	query, err := s.engine.NewInstantQuery(ctx, s.database, nil, `{__name__!=""}`, now)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	all, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("read what was scraped last: %w", err)
	}
	ofRules := map[string]bool{"ALERTS": true, "ALERTS_FOR_STATE": true}
	for _, rule := range s.rules.Rules() {
		ofRules[rule.Name()] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(sample promql.Sample) bool {
		return sample.H != nil || ofRules[sample.Metric.Get("__name__")]
	}), nil
}

// repeat stores the samples again with another time.
func (s *Server) repeat(ctx context.Context, samples promql.Vector, refs []storage.SeriesRef, at time.Time) (err error) {
	appender := s.database.Appender(ctx)
	for i, sample := range samples {
		if refs[i], err = appender.Append(refs[i], sample.Metric, timestamp.FromTime(at), sample.F); err != nil {
			return errors.Join(fmt.Errorf("store %s at %s: %w", sample.Metric, at.Format(time.RFC3339), err), appender.Rollback())
		}
	}
	return appender.Commit()
}

// ForwardHandler lets the duration in the parameter by pass, such as 2h, and responds afterwards.
func (s *Server) ForwardHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by, err := time.ParseDuration(r.FormValue("by"))
		if err == nil {
			err = s.Forward(r.Context(), by)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
