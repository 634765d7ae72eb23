package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/rules"
)

const configuration = `
global: {scrape_interval: 500ms, evaluation_interval: 50ms}
rule_files: ['%s']
scrape_configs:
- job_name: target
  static_configs: [{targets: ['%s']}]
`

const ruleFile = `
groups:
- name: alerts
  rules:
  - {alert: Broken, expr: broken == 1, for: 15m}
  - {alert: Repaired, expr: 'increase(repairs_total[1h]) > 0'}
`

// run runs a Prometheus that scrapes a target with these values.
func run(t *testing.T, broken, repairs *atomic.Int64) *Server {
	t.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "broken %d\nrepairs_total %d\n", broken.Load(), repairs.Load())
	}))
	t.Cleanup(target.Close)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(ruleFile), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Dir: t.TempDir(), URL: &url.URL{Scheme: "http", Host: "localhost", Path: "/"},
		Log: slog.New(slog.DiscardHandler), DiscoveryInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := s.Apply(fmt.Appendf(nil, configuration, file, strings.TrimPrefix(target.URL, "http://"))); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) state(t *testing.T, alert string) rules.AlertState {
	t.Helper()
	for _, rule := range s.rules.AlertingRules() {
		if rule.Name() == alert {
			return rule.State()
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return 0
}

func (s *Server) await(t *testing.T, alert string, want rules.AlertState) {
	t.Helper()
	deadline := time.After(time.Minute)
	for s.state(t, alert) != want {
		select {
		case <-deadline:
			t.Fatalf("%s is %s, not %s", alert, s.state(t, alert), want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Server) forward(t *testing.T, by time.Duration) {
	t.Helper()
	if err := s.Forward(t.Context(), by); err != nil {
		t.Fatal(err)
	}
}

func TestForward_AdvancesSamplesAndRules(t *testing.T) {
	var broken, repairs atomic.Int64
	s := run(t, &broken, &repairs)
	s.await(t, "Broken", rules.StateInactive)
	broken.Store(1)
	s.await(t, "Broken", rules.StatePending)
	t.Run("an alert is pending until its time is over, and fires then", func(t *testing.T) {
		s.forward(t, 13*time.Minute)
		if got := s.state(t, "Broken"); got != rules.StatePending {
			t.Errorf("after 13 minutes it is %s", got)
		}
		s.forward(t, 3*time.Minute)
		s.await(t, "Broken", rules.StateFiring)
	})
	t.Run("what is scraped after that counts at once", func(t *testing.T) {
		broken.Store(0)
		s.await(t, "Broken", rules.StateInactive)
	})
	t.Run("what lies in a window leaves it", func(t *testing.T) {
		repairs.Store(5)
		s.await(t, "Repaired", rules.StateFiring)
		s.forward(t, 30*time.Minute)
		if got := s.state(t, "Repaired"); got != rules.StateFiring {
			t.Errorf("after half an hour it is %s", got)
		}
		s.forward(t, 31*time.Minute)
		s.await(t, "Repaired", rules.StateInactive)
	})
	t.Run("the present is later by all that", func(t *testing.T) {
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/v1/query?query=time()", http.NoBody))
		var got struct{ Data struct{ Result [2]any } }
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, answer.Body)
		}
		text, _ := got.Data.Result[1].(string)
		seconds, err := strconv.ParseFloat(text, 64)
		if ahead := seconds - float64(time.Now().Unix()); err != nil || ahead < (76*time.Minute).Seconds() || ahead > (79*time.Minute).Seconds() {
			t.Errorf("it is ahead by %v seconds (error %v)", ahead, err)
		}
	})
	t.Run("it goes forward only, and not further than two days at once", func(t *testing.T) {
		for _, by := range []time.Duration{0, -time.Minute, farthest + 1} {
			if err := s.Forward(t.Context(), by); err == nil {
				t.Errorf("it went forward by %s", by)
			}
		}
	})
}
