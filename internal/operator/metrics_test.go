package operator

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// writePair writes a certificate for a name and its key, in the layout of a mounted Secret.
func writePair(t *testing.T, directory, name string, modified time.Time) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		path := filepath.Join(directory, file)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMetrics_CertificateFollowsServiceCA(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	s := &servingCertificate{directory: directory, selfSigned: sync.OnceValues(selfSigned)}
	expect := func(t *testing.T, name string) {
		t.Helper()
		got, err := s.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	t.Run("is self-signed until there is one, and stays the same", func(t *testing.T) {
		expect(t, "localhost")
		first, _ := s.get(nil)
		if again, _ := s.get(nil); again != first {
			t.Error("it is made anew for each connection")
		}
	})
	t.Run("is the service CA's once it has come", func(t *testing.T) {
		writePair(t, directory, "first.example.com", now)
		expect(t, "first.example.com")
	})
	t.Run("follows its rotation", func(t *testing.T) {
		writePair(t, directory, "second.example.com", now.Add(time.Minute))
		expect(t, "second.example.com")
	})
	t.Run("is the one before while the files are no pair", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(directory, "tls.key"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(directory, "tls.crt"), now, now.Add(2*time.Minute)); err != nil {
			t.Fatal(err)
		}
		expect(t, "second.example.com")
	})
	t.Run("is the one before when the files are taken away", func(t *testing.T) {
		if err := os.Remove(filepath.Join(directory, "tls.crt")); err != nil {
			t.Fatal(err)
		}
		expect(t, "second.example.com")
	})
	t.Run("is an error that names the folder when the first one cannot be read", func(t *testing.T) {
		broken := t.TempDir()
		if err := os.WriteFile(filepath.Join(broken, "tls.crt"), []byte("none"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (&servingCertificate{directory: broken, selfSigned: selfSigned}).get(nil); err == nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("is self-signed without a folder", func(t *testing.T) {
		got, err := (&servingCertificate{selfSigned: selfSigned}).get(nil)
		if err != nil || got.Leaf.VerifyHostname("localhost") != nil {
			t.Errorf("got %v, error %v", got, err)
		}
	})
}

func TestMetrics_ServedWithTLSOnly(t *testing.T) {
	options := Config{MetricsAddress: ":8443"}.metricsOptions()
	if !options.SecureServing || options.FilterProvider == nil {
		t.Errorf("they are served as %+v", options)
	}
	var config tls.Config
	for _, set := range options.TLSOpts {
		set(&config)
	}
	if config.MinVersion < tls.VersionTLS12 || config.GetCertificate == nil {
		t.Errorf("TLS version %x, a certificate: %t", config.MinVersion, config.GetCertificate != nil)
	}
}

// reviewingAPIServer responds to reviews of tokens and rights: the token "good" belongs to a user with the
// right to get /metrics, "other" to a user without rights.
func reviewingAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			review := &authenticationv1.TokenReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil {
				t.Error(err)
			}
			name, ok := map[string]string{"good": "prometheus", "other": "mallory"}[review.Spec.Token]
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, User: authenticationv1.UserInfo{Username: name}}
			answer = review
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			review := &authorizationv1.SubjectAccessReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil {
				t.Error(err)
			}
			of := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "prometheus" && *of == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
			answer = review
		default:
			t.Errorf("a request for %s", r.URL.Path)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func TestMetrics_ServedToAuthorizedClientsOnly(t *testing.T) {
	filter, err := Config{}.metricsOptions().FilterProvider(reviewingAPIServer(t), http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	const page = "the metrics"
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"a client that may get the path":          {"GET", "/metrics", "Bearer good", 200},
		"a client without a token":                {"GET", "/metrics", "", 401},
		"a client with an empty token":            {"GET", "/metrics", "Bearer ", 401},
		"a client with a token of no user":        {"GET", "/metrics", "Bearer made-up", 500}, // the filter's response
		"a client with a password":                {"GET", "/metrics", "Basic good", 401},
		"a client that is known and has no right": {"GET", "/metrics", "Bearer other", 403},
		"a client with a right on another path":   {"GET", "/debug/pprof", "Bearer good", 403},
		"a client with a right to another method": {"POST", "/metrics", "Bearer good", 403},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil)
			if test.authorization != "" {
				request.Header.Set("Authorization", test.authorization)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != test.want || (recorder.Body.String() == page) != (test.want == http.StatusOK) {
				t.Errorf("the status is %d, want %d; the page: %s", recorder.Code, test.want, recorder.Body)
			}
		})
	}
}

func TestMetrics_NotServedIfTokenReviewFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(server.Close)
	filter, err := Config{}.metricsOptions().FilterProvider(&rest.Config{Host: server.URL}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	handler, err := filter(funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{}),
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the metrics are read") }))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", "Bearer good-token")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusInternalServerError {
		t.Errorf("the status is %d", recorder.Code)
	}
	if len(log) != 1 || strings.Contains(log[0], "good-token") {
		t.Errorf("the log is %q: want the reason once, and no token", log)
	}
}

// Any pod that reaches the port can invent tokens, so the number of concurrent requests to the API server is limited.
func TestMetrics_ConcurrentReviewsLimited(t *testing.T) {
	var running, most atomic.Int32
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	filter, err := Config{}.metricsOptions().FilterProvider(&rest.Config{Host: server.URL, QPS: -1}, &http.Client{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	var requests sync.WaitGroup
	for i := range 4 * maxMetricsRequests {
		requests.Go(func() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			request.Header.Set("Authorization", fmt.Sprintf("Bearer made-up-%d", i))
			handler.ServeHTTP(httptest.NewRecorder(), request)
		})
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return running.Load() == maxMetricsRequests, nil
	}); err != nil {
		t.Fatalf("%d requests are under way: %v", running.Load(), err)
	}
	close(answer)
	requests.Wait()
	if most.Load() > maxMetricsRequests {
		t.Errorf("the API server was asked %d times at once", most.Load())
	}
}
