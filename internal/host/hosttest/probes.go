package hosttest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// serveHTTP answers HTTP on the machine.
func (s *suite) serveHTTP(handler http.HandlerFunc) (address string) {
	if s.machine.ServeHTTP == nil {
		s.skipBehavior("the suite cannot serve HTTP in this environment")
	}
	address, err := s.machine.ServeHTTP(handler)
	s.requireNoError(err)
	return address
}

func httpProbeBehaviors() []Behavior {
	return []Behavior{
		{"Probes.HTTPGet", "a response has a status code and a body", func(s *suite) {
			address := s.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/healthz" {
					w.WriteHeader(http.StatusTeapot)
				}
				_, _ = w.Write([]byte("ok"))
			})
			status, body, err := s.Probes.HTTPGet(s.ctx, address+"/healthz", nil)
			s.requireNoError(err)
			expectEqual(s, "status", status, http.StatusOK)
			expectEqual(s, "body", body, "ok")
		}},
		{"Probes.HTTPGet", "a status code other than 200 is no error", func(s *suite) {
			address := s.serveHTTP(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "PLEG is not healthy", http.StatusInternalServerError)
			})
			status, body, err := s.Probes.HTTPGet(s.ctx, address+"/healthz", nil)
			s.requireNoError(err)
			expectEqual(s, "status", status, http.StatusInternalServerError)
			expectEqual(s, "body", strings.TrimSpace(body), "PLEG is not healthy")
		}},
		{"Probes.HTTPGet", "only the first KiB of a long response is read", func(s *suite) {
			address := s.serveHTTP(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(strings.Repeat("metric 1\n", 10_000)))
			})
			_, body, err := s.Probes.HTTPGet(s.ctx, address+"/metrics", nil)
			s.requireNoError(err)
			expectEqual(s, "length", len(body), 1<<10)
		}},
		{"Probes.HTTPGet", "a request is canceled with its context", func(s *suite) {
			asked, over := make(chan struct{}, 1), make(chan struct{})
			defer close(over)
			address := s.serveHTTP(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-over })
			ctx, cancel := context.WithCancel(s.ctx)
			go func() {
				select {
				case <-asked:
				case <-s.ctx.Done():
				}
				cancel()
			}()
			_, _, err := s.Probes.HTTPGet(ctx, address+"/hangs", nil)
			s.requireError(err, context.Canceled)
		}},
		{"Probes.HTTPGet", "a request to a port without a listener fails", func(s *suite) {
			_, _, err := s.Probes.HTTPGet(s.ctx, "http://127.0.0.1:1/healthz", nil)
			s.expectAnyError("question", err)
		}},
	}
}

func runtimeProbeBehaviors() []Behavior {
	return []Behavior{
		{"Probes.ContainerRuntime", "a container runtime reports name, version and readiness",
			func(s *suite) {
				if s.machine.ServeRuntime == nil {
					s.skipBehavior("the suite cannot serve as a container runtime in this environment")
				}
				want := host.RuntimeStatus{Name: "containerd", Version: "v2.4.2", Ready: true}
				endpoint, err := s.machine.ServeRuntime(want)
				s.requireNoError(err)
				got, err := s.Probes.ContainerRuntime(s.ctx, endpoint)
				s.requireNoError(err)
				expectEqual(s, "status", got, want)
			}},
		{"Probes.ContainerRuntime", "a container runtime reports that it is not ready", func(s *suite) {
			if s.machine.ServeRuntime == nil {
				s.skipBehavior("the suite cannot serve as a container runtime in this environment")
			}
			endpoint, err := s.machine.ServeRuntime(host.RuntimeStatus{Name: "containerd", Version: "v2.4.2"})
			s.requireNoError(err)
			got, err := s.Probes.ContainerRuntime(s.ctx, endpoint)
			s.requireNoError(err)
			expectEqual(s, "ready", got.Ready, false)
		}},
		{"Probes.ContainerRuntime", "a query without a container runtime fails", func(s *suite) {
			_, err := s.Probes.ContainerRuntime(s.ctx, "npipe://./pipe/wmco-contract-none")
			s.expectAnyError("question", err)
			expectEqual(s, "the call used up the timeout", errors.Is(err, context.DeadlineExceeded), false)
		}},
	}
}
