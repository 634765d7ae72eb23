package containerd

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
)

const digest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

// network stands for all registries: whoever dials any of them reaches it. No registry of it has any image.
type network struct {
	secure, plain *httptest.Server
	root          string // containerd's configuration of registries

	mutex    sync.Mutex
	requests []string // "host path", in their order
	headers  map[string]string
	sent     []string // "host", user and what a form says, of each request with any of it

	tokens      bool // registries want a token
	credentials func(string) (string, string, error)
}

func newNetwork(t *testing.T) *network {
	n := &network{headers: map[string]string{}, root: t.TempDir()}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		n.requests = append(n.requests, r.Host+" "+r.URL.Path)
		if user, password, ok := r.BasicAuth(); ok || r.FormValue("password") != "" {
			n.sent = append(n.sent, r.Host+" "+user+" "+password+" "+r.FormValue("username")+" "+r.FormValue("password"))
		}
		if n.tokenRegistry(w, r) {
			return
		}
		n.headers[r.Host] = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
	})
	n.secure, n.plain = httptest.NewUnstartedServer(handler), httptest.NewServer(handler)
	n.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	t.Cleanup(n.plain.Close)
	if err := os.CopyFS(n.root, os.DirFS(filepath.Join(testdata, "registries"))); err != nil {
		t.Fatal(err)
	}
	// The golden files' authority is one that signed nothing: in its place stands the one that signed the server's
	// certificate.
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.secure.Certificate().Raw})
	files, err := filepath.Glob(filepath.Join(n.root, "*", "ca-*.pem"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no authorities; %v", err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, authority, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// dial leads to the network, whatever the host is. Hosts that speak no TLS, and names that nobody has, are as in the
// world.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	if strings.HasSuffix(host, ".invalid") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	server := n.secure
	if strings.HasPrefix(host, "plain.") || strings.HasPrefix(host, "insecure.") {
		server = n.plain
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
}

// resolve asks for an image as containerd does before it pulls it, and gives what was asked and the error of the pull.
func (n *network) resolve(t *testing.T, image string) ([]string, error) {
	t.Helper()
	n.requests = nil
	options := config.HostOptions{HostDir: config.HostDirFromRoot(n.root), Credentials: n.credentials,
		UpdateClient: func(client *http.Client) error {
			transport := client.Transport.(*http.Transport)
			transport.DialContext, transport.Proxy = n.dial, nil
			// The test is about requests and credentials, not about certificates.
			transport.TLSClientConfig.InsecureSkipVerify = transport.TLSClientConfig.InsecureSkipVerify || n.tokens //nolint:gosec // a test's own server
			if transport.TLSClientConfig.RootCAs != nil {
				// The certificate of the test server has names of its own.
				transport.TLSClientConfig.ServerName = "example.com"
				transport.TLSClientConfig.MinVersion = tls.VersionTLS12
			}
			return nil
		}}
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: config.ConfigureHosts(t.Context(), options)})
	_, _, err := resolver.Resolve(t.Context(), image)
	if err == nil {
		t.Errorf("%s was found", image)
		err = fmt.Errorf("none")
	}
	return n.requests, err
}

func TestRegistries_RequestedAsConfigured(t *testing.T) {
	n := newNetwork(t)
	t.Run("mirrors in their order, with their paths and credentials, those without tags for digests only",
		func(t *testing.T) {
			asked, _ := n.resolve(t, "quay.io/org/app@"+digest)
			want := []string{
				"second.example.com:5000 /v2/mirrors/quay/org/app/manifests/" + digest,
				"plain.example.com:8080 /v2/q/org/app/manifests/" + digest,
			}
			if got := slices.DeleteFunc(slices.Clone(asked), func(request string) bool {
				return !slices.Contains(want, request)
			}); !slices.Equal(got, want) {
				t.Errorf("asked were\n%s", strings.Join(asked, "\n"))
			}
			if n.headers["second.example.com:5000"] != "Basic bWlycm9yOnNlY3JldA==" ||
				n.headers["plain.example.com:8080"] != "" {
				t.Errorf("%v", n.headers)
			}
		})
	t.Run("a mirror for digests only is not asked for a tag", func(t *testing.T) {
		asked, err := n.resolve(t, "registry.example.com:5000/app:v1")
		if len(asked) != 0 || !strings.Contains(err.Error(), "source-never-contacted-by-mirror-set.invalid") {
			t.Errorf("asked were %v; error %v", asked, err)
		}
	})
	t.Run("a source with a port that is never contacted has its mirror asked", func(t *testing.T) {
		_, err := n.resolve(t, "registry.example.com:5000/app@"+digest)
		if err == nil || strings.Contains(err.Error(), "registry.example.com:5000/v2") {
			t.Error(err)
		}
	})
	t.Run("an insecure registry without TLS is asked", func(t *testing.T) {
		if asked, err := n.resolve(t, "insecure.example.com:5000/app:v1"); !slices.Contains(asked,
			"insecure.example.com:5000 /v2/app/manifests/v1") {
			t.Errorf("asked were %v; error %v", asked, err)
		}
	})
	t.Run("a registry with an authority of its own is asked", func(t *testing.T) {
		if asked, err := n.resolve(t, "private.example.com/app:v1"); !slices.Contains(asked,
			"private.example.com /v2/app/manifests/v1") {
			t.Errorf("asked were %v; error %v", asked, err)
		}
	})
	for image, reason := range map[string]string{
		"blocked.example.com/app:v1":   "blocked-by-image-config.invalid",
		"other.example.com/app:v1":     "not-among-allowed-registries-of-image-config.invalid",
		"other.example.com:443/app:v1": "not-among-allowed-registries-of-image-config.invalid",
	} {
		t.Run("the error of a pull of "+image+" says why nobody is asked", func(t *testing.T) {
			if asked, err := n.resolve(t, image); len(asked) != 0 || !strings.Contains(err.Error(), reason) {
				t.Errorf("asked were %v; error %v", asked, err)
			}
		})
	}
}

// What the loader makes of a file without an own address is decided in the program: docker.io's images are elsewhere.
func TestRegistries_AllowedRegistriesHaveContainerdHosts(t *testing.T) {
	for host, want := range map[string]string{"docker.io": "registry-1.docker.io",
		"mcr.microsoft.com": "mcr.microsoft.com", "private.example.com": "private.example.com"} {
		hosts, err := config.ConfigureHosts(t.Context(),
			config.HostOptions{HostDir: config.HostDirFromRoot(newNetwork(t).root)})(host)
		if err != nil || len(hosts) != 1 {
			t.Fatalf("%v, %v", hosts, err)
		}
		if hosts[0].Host != want || hosts[0].Scheme != "https" || hosts[0].Path != "/v2" ||
			!hosts[0].Capabilities.Has(docker.HostCapabilityResolve) {
			t.Errorf("%s is %+v", host, hosts[0])
		}
	}
}
