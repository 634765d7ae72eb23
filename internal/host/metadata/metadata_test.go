package metadata_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/metadata"
)

const token = "AQAEAGtZ-example_token+of/56characters=="

// newAWSHandler returns a metadata service of version 2 with the given local-hostname.
func newAWSHandler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" &&
			r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "60":
			_, _ = io.WriteString(w, token)
		case r.Method == http.MethodGet && r.URL.Path == "/latest/meta-data/local-hostname" &&
			r.Header.Get("X-aws-ec2-metadata-token") == token:
			_, _ = io.WriteString(w, name)
		default:
			http.Error(w, "no token, or no such page", http.StatusUnauthorized)
		}
	}
}

// newGCPHandler returns a metadata service with the given instance name.
func newGCPHandler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/computeMetadata/v1/instance/name" ||
			r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "missing header", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = io.WriteString(w, name)
	}
}

func queryHostName(t *testing.T, platform string, service http.Handler) (string, error) {
	t.Helper()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return metadata.New(server.URL).HostName(t.Context(), platform)
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		name, platform string
		service        http.Handler
		want           string
	}{
		{"AWS tells the private DNS name", "AWS", newAWSHandler("ip-10-0-0-4.ec2.internal"), "ip-10-0-0-4.ec2.internal"},
		{"AWS tells several names when the network has several domains", "AWS", newAWSHandler("ip-10-0-0-4.one.example two.example\n"),
			"ip-10-0-0-4.one.example"},
		{"a node's name has no capitals", "AWS", newAWSHandler("IP-10-0-0-4.Example"), "ip-10-0-0-4.example"},
		{"GCP tells the instance's name", "GCP", newGCPHandler("winworker-abcde\n"), "winworker-abcde"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := queryHostName(t, c.platform, c.service)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestHostName_OtherPlatformsNotQueried(t *testing.T) {
	for _, platform := range []string{"", "None", "VSphere", "Azure", "aws", strings.Repeat("x", 1000)} {
		_, err := queryHostName(t, platform, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
		if !errors.Is(err, host.ErrNotExist) || len(err.Error()) > 200 {
			t.Errorf("platform %.20q: %v", platform, err)
		}
	}
}

// withAWSToken returns the AWS service with a valid token and the given handler for all other requests.
func withAWSToken(page http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			_, _ = io.WriteString(w, token)
			return
		}
		page(w, r)
	})
}

func TestHostName_HostileResponseRejected(t *testing.T) {
	elsewhere := httptest.NewServer(newAWSHandler("elsewhere.example"))
	t.Cleanup(elsewhere.Close)
	for _, c := range []struct {
		name, platform string
		service        http.Handler
		want           string // part of the error
	}{
		{"a service without a token", "AWS", http.NotFoundHandler(), "404"},
		{"a service that wants nobody", "AWS", withAWSToken(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}), "401"},
		{"a token that would make another header", "AWS", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a\r\nX-Other: b")
		}), "token is not valid"},
		{"no token at all", "AWS", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "contains no token"},
		{"an endless token", "AWS", http.HandlerFunc(writeEndlessBody), "longer than"},
		{"an endless name", "AWS", withAWSToken(writeEndlessBody), "longer than"},
		{"no name", "AWS", newAWSHandler(" \n"), "no name"},
		{"a page of a portal", "AWS", newAWSHandler("<html>log in</html>"), "not a valid DNS name"},
		{"a name that is a path", "AWS", newAWSHandler(`..\..\windows`), "not a valid DNS name"},
		{"a name with control characters", "GCP", newGCPHandler("a\x00b"), "not a valid DNS name"},
		{"a name that is too long", "GCP", newGCPHandler(strings.Repeat("a", 64)), "not a valid DNS name"},
		{"a name of too many parts", "GCP", newGCPHandler(strings.Repeat("a.", 200) + "a"), "not a valid DNS name"},
		{"a redirect", "AWS", http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect), "307"},
		{"a redirect of the name", "AWS", withAWSToken(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
		}), "302"},
		{"something that is not GCP's", "GCP", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "winworker-abcde")
		}), "Metadata-Flavor"},
		{"a body that ends early", "AWS", withAWSToken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "40")
			_, _ = io.WriteString(w, "ip-10")
		}), "read the response"},
	} {
		t.Run(c.name+" is no answer", func(t *testing.T) {
			name, err := queryHostName(t, c.platform, c.service)
			if err == nil || name != "" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.platform) {
				t.Errorf("got %q, %v", name, err)
			}
			if err != nil && (len(err.Error()) > 500 || strings.Contains(err.Error(), token)) {
				t.Errorf("the error is too long or tells the token: %v", err)
			}
		})
	}
}

func writeEndlessBody(w http.ResponseWriter, _ *http.Request) {
	for range 1 << 10 {
		if _, err := io.WriteString(w, strings.Repeat("a", 4<<10)); err != nil {
			return
		}
	}
}

func TestHostName_SilentServiceIsError(t *testing.T) {
	t.Run("a service that never answers is given up with the context", func(t *testing.T) {
		requested := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(requested)
			<-r.Context().Done()
		}))
		defer server.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		go func() { <-requested; cancel() }()
		if _, err := metadata.New(server.URL).HostName(ctx, "AWS"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("on a machine without a metadata service, the error says what may be wrong", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		if _, err := metadata.New(server.URL).HostName(t.Context(), "GCP"); err == nil || !strings.Contains(err.Error(),
			"route to the metadata service") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no proxy is asked", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
		if got, err := queryHostName(t, "GCP", newGCPHandler("a")); err != nil || got != "a" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
