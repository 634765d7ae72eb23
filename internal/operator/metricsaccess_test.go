package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// apiServer answers who a token belongs to and what he may get, and counts how often it was asked.
type apiServer struct {
	users   map[string]string // by token
	readers map[string]bool   // by name
	down    error
	asked   int
	block   chan struct{} // when it is not nil, an answer waits for it
}

func (s *apiServer) authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	s.asked++
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	name, ok := s.users[token]
	if !ok || s.down != nil {
		return nil, s.down
	}
	return &authenticationv1.UserInfo{Username: name}, nil
}

func (s *apiServer) mayGet(_ context.Context, user *authenticationv1.UserInfo, path string) (bool, error) {
	return s.readers[user.Username] && path == "/metrics", s.down
}

func newAPIServer() *apiServer {
	return &apiServer{users: map[string]string{"good": "prometheus", "other": "somebody"},
		readers: map[string]bool{"prometheus": true}}
}

func pages() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the metrics")) })
}

// answer is what a request with an Authorization header gets.
func answer(t *testing.T, handler http.Handler, method, path, authorization string) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if told := strings.Contains(recorder.Body.String(), "the metrics"); told != (recorder.Code == http.StatusOK) {
		t.Errorf("the status is %d, and the page: %s", recorder.Code, recorder.Body)
	}
	return recorder.Code
}

func TestWhoReadsMetrics(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"who may get the path":                      {"GET", "/metrics", "Bearer good", 200},
		"the scheme is of any case":                 {"GET", "/metrics", "bearer good", 200},
		"nobody without a token":                    {"GET", "/metrics", "", 401},
		"nobody with an empty one":                  {"GET", "/metrics", "Bearer ", 401},
		"nobody with a token that is nobody's":      {"GET", "/metrics", "Bearer made-up", 401},
		"nobody with a password":                    {"GET", "/metrics", "Basic good", 401},
		"nobody who is known and has no such right": {"GET", "/metrics", "Bearer other", 403},
		"not with a right on another path":          {"GET", "/debug/pprof", "Bearer good", 403},
		"not by writing":                            {"POST", "/metrics", "Bearer good", 405},
	} {
		t.Run(name, func(t *testing.T) {
			handler := newAccess(newAPIServer(), clocktesting.NewFakePassiveClock(time.Now()), logr.Discard(), pages())
			if got := answer(t, handler, test.method, test.path, test.authorization); got != test.want {
				t.Errorf("the status is %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheAPIServersWordIsRememberedForAWhile(t *testing.T) {
	server, clock := newAPIServer(), clocktesting.NewFakePassiveClock(time.Now())
	handler := newAccess(server, clock, logr.Discard(), pages())
	expect := func(authorization string, status, asked int) {
		t.Helper()
		if got := answer(t, handler, "GET", "/metrics", authorization); got != status || server.asked != asked {
			t.Errorf("the status is %d, the API server was asked %d times; want %d and %d", got, server.asked, status, asked)
		}
	}
	expect("Bearer good", 200, 1)
	expect("Bearer good", 200, 1)
	expect("Bearer other", 403, 2)
	clock.SetTime(clock.Now().Add(refusedFor))
	expect("Bearer other", 403, 3) // It may have been given the right.
	expect("Bearer good", 200, 3)
	delete(server.users, "good")
	clock.SetTime(clock.Now().Add(allowedFor))
	expect("Bearer good", 401, 4)
}

func TestAnAPIServerThatGivesNoAnswerLetsNobodyRead(t *testing.T) {
	server := newAPIServer()
	server.down = errors.New("no answer")
	var told []string
	log := funcr.New(func(_, line string) { told = append(told, line) }, funcr.Options{})
	handler := newAccess(server, clocktesting.NewFakePassiveClock(time.Now()), log, pages())
	if got := answer(t, handler, "GET", "/metrics", "Bearer good"); got != http.StatusServiceUnavailable {
		t.Errorf("the status is %d", got)
	}
	if len(told) != 1 || strings.Contains(told[0], "good") {
		t.Errorf("the log says %q: the reason once, and no token", told)
	}
	server.down = nil
	if got := answer(t, handler, "GET", "/metrics", "Bearer good"); got != http.StatusOK {
		t.Errorf("an answer that failed was remembered: %d", got)
	}
}

func TestMadeUpTokens(t *testing.T) {
	t.Run("are remembered up to a number, and push out nobody who may read", func(t *testing.T) {
		server := newAPIServer()
		handler := newAccess(server, clocktesting.NewFakePassiveClock(time.Now()), logr.Discard(), pages())
		answer(t, handler, "GET", "/metrics", "Bearer good")
		for i := range 3 * tokensKnown {
			if got := answer(t, handler, "GET", "/metrics", fmt.Sprintf("Bearer made-up-%d",
				i)); got != http.StatusUnauthorized {
				t.Fatalf("the status is %d", got)
			}
		}
		if len(handler.known) > tokensKnown {
			t.Errorf("%d are remembered", len(handler.known))
		}
		before := server.asked
		if got := answer(t, handler, "GET", "/metrics", "Bearer good"); got != http.StatusOK || server.asked != before {
			t.Errorf("the status is %d, the API server was asked again %d times", got, server.asked-before)
		}
	})
	t.Run("are asked about a few at a time", func(t *testing.T) {
		server := newAPIServer()
		server.block = make(chan struct{})
		handler := newAccess(server, clocktesting.NewFakePassiveClock(time.Now()), logr.Discard(), pages())
		for range reviewsAtOnce {
			handler.slots <- struct{}{} // that many are being asked about
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // who asks has gone
		if _, err := handler.status(ctx, "one more", "/metrics"); err == nil || server.asked != 0 {
			t.Errorf("error %v, asked %d times", err, server.asked)
		}
	})
}
