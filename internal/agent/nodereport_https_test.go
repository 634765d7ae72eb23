package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent"
)

// received is a request as an API server gets it.
type received struct {
	method, path, kind, user, group, body string
}

// apiServer is one that asks for a client's certificate of authority(), and keeps what it gets. answer may be nil.
func newAPIServer(t *testing.T, answer http.HandlerFunc) (server *httptest.Server, requests func() []received) {
	t.Helper()
	var mu sync.Mutex
	var got []received
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		subject := r.TLS.PeerCertificates[0].Subject
		mu.Lock()
		got = append(got, received{r.Method, r.URL.Path, r.Header.Get("Content-Type"), subject.CommonName, strings.Join(subject.Organization, ","), string(body)})
		mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	clients := x509.NewCertPool()
	clients.AddCert(authority())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are what some tests are about
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, func() []received {
		mu.Lock()
		defer mu.Unlock()
		return append([]received(nil), got...)
	}
}

func authoritiesOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// clientCertificate is an agent's.
func clientCertificate(t *testing.T, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		Subject:     pkix.Name{CommonName: "windowsmachineconfig.openshift.io:agent:node-a", Organization: []string{"windowsmachineconfig.openshift.io:agents"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority(), key.Public(), authorityKey())
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestPatchOverHTTPS(t *testing.T) {
	good := func(t *testing.T) tls.Certificate { return clientCertificate(t, time.Now().Add(time.Hour)) }
	patchTo := func(t *testing.T, server *httptest.Server) agent.Patch {
		return agent.Patch{URL: server.URL + "/apis/reports/node-a/status", Body: []byte(`{"status":{}}`), Authorities: authoritiesOf(server), Certificate: good(t)}
	}
	t.Run("sends a merge patch with the client's certificate", func(t *testing.T) {
		server, requests := newAPIServer(t, nil)
		code, _, err := agent.HTTPS{}.Patch(t.Context(), patchTo(t, server))
		want := received{"PATCH", "/apis/reports/node-a/status", "application/merge-patch+json", "windowsmachineconfig.openshift.io:agent:node-a",
			"windowsmachineconfig.openshift.io:agents", `{"status":{}}`}
		if got := requests(); err != nil || code != http.StatusOK || len(got) != 1 || got[0] != want {
			t.Errorf("%d %v, got %+v", code, err, got)
		}
	})
	t.Run("asks no proxy", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
		t.Setenv("https_proxy", "http://127.0.0.1:1")
		server, _ := newAPIServer(t, nil)
		patch := patchTo(t, server)
		// Of addresses of the machine itself no proxy is ever asked.
		patch.URL = strings.Replace(patch.URL, "127.0.0.1", "example.com", 1)
		var dialed string
		h := agent.HTTPS{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed = address
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}}
		if code, _, err := h.Patch(t.Context(), patch); err != nil || code != http.StatusOK || !strings.HasPrefix(dialed, "example.com:") {
			t.Errorf("%d %v, dialed %s", code, err, dialed)
		}
	})
	t.Run("follows no redirect", func(t *testing.T) {
		other, elsewhere := newAPIServer(t, nil)
		server, _ := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		})
		code, _, err := agent.HTTPS{}.Patch(t.Context(), patchTo(t, server))
		if err != nil || code != http.StatusTemporaryRedirect || len(elsewhere()) != 0 {
			t.Errorf("%d %v, the other server got %+v", code, err, elsewhere())
		}
	})
	t.Run("reads no more of an answer than it needs", func(t *testing.T) {
		server, _ := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			for range 1000 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		code, body, err := agent.HTTPS{}.Patch(t.Context(), patchTo(t, server))
		if err != nil || code != http.StatusForbidden || len(body) > 64<<10 {
			t.Errorf("%d %v, %d bytes", code, err, len(body))
		}
	})
	t.Run("ends when it is cut off", func(t *testing.T) {
		came, over := make(chan struct{}), make(chan struct{})
		server, _ := newAPIServer(t, func(http.ResponseWriter, *http.Request) { close(came); <-over })
		defer close(over)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-came; cancel() }()
		if _, _, err := (agent.HTTPS{}).Patch(ctx, patchTo(t, server)); err == nil {
			t.Error("it got an answer")
		}
	})
	for name, spoil := range map[string]func(*testing.T, *httptest.Server, *agent.Patch){
		"a server of another authority": func(_ *testing.T, _ *httptest.Server, p *agent.Patch) {
			p.Authorities = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority().Raw})
		},
		"no authority":          func(_ *testing.T, _ *httptest.Server, p *agent.Patch) { p.Authorities = nil },
		"a server that is gone": func(_ *testing.T, s *httptest.Server, _ *agent.Patch) { s.Close() },
		"a server that knows no certificate of the client's kind": func(t *testing.T, _ *httptest.Server, p *agent.Patch) {
			p.Certificate = clientCertificate(t, time.Now().Add(-time.Hour))
		},
		"a server in plain text": func(_ *testing.T, _ *httptest.Server, p *agent.Patch) {
			p.URL = strings.Replace(p.URL, "https:", "http:", 1)
		},
	} {
		t.Run("brings nothing to "+name, func(t *testing.T) {
			server, requests := newAPIServer(t, nil)
			patch := patchTo(t, server)
			spoil(t, server, &patch)
			code, _, err := agent.HTTPS{}.Patch(t.Context(), patch)
			if len(requests()) != 0 || err == nil && code/100 == 2 {
				t.Errorf("%d %v, got %+v", code, err, requests())
			}
		})
	}
}
