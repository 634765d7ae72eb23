package report_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/report/reporttest"
)

// signer signs like the cluster's signer of client certificates.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test signer"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(data)
	if err != nil {
		t.Fatal(err)
	}
	return signer{certificate, key}
}

func (s signer) clientCertificate(t *testing.T, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		Subject:     pkix.Name{CommonName: "system:node:node-a", Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, key.Public(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// call is a patch of a Node.
type call struct {
	url string
	as  report.Credentials
}

func (c call) sendPatch(ctx context.Context, h report.HTTPS) (int, []byte, error) {
	return h.Send(ctx, c.as, http.MethodPatch, c.url, []byte(`{"status":{}}`))
}

func TestHTTPS_SendsToTrustedServerOnly(t *testing.T) {
	s := newSigner(t)
	newServer := func(t *testing.T, answer http.HandlerFunc) (*httptest.Server, func() []reporttest.Received) {
		return reporttest.NewServer(t, s.certificate, answer)
	}
	good := func(t *testing.T) tls.Certificate { return s.clientCertificate(t, time.Now().Add(time.Hour)) }
	to := func(t *testing.T, server *httptest.Server) call {
		return call{server.URL + "/api/v1/nodes/node-a/status", report.Credentials{Authorities: reporttest.AuthoritiesOf(server), Certificate: good(t)}}
	}
	t.Run("a strategic merge patch is sent with the client's certificate", func(t *testing.T) {
		server, requests := newServer(t, nil)
		code, _, err := to(t, server).sendPatch(t.Context(), report.HTTPS{})
		want := reporttest.Received{
			Method: "PATCH", Path: "/api/v1/nodes/node-a/status", Kind: "application/strategic-merge-patch+json",
			User: "system:node:node-a", Group: "system:nodes", Body: `{"status":{}}`,
		}
		if got := requests(); err != nil || code != http.StatusOK || len(got) != 1 || got[0] != want {
			t.Errorf("%d %v, got %+v", code, err, got)
		}
	})
	t.Run("asks no proxy", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
		t.Setenv("https_proxy", "http://127.0.0.1:1")
		server, _ := newServer(t, nil)
		patch := to(t, server)
		// Proxies are never used for addresses of the local machine.
		patch.url = strings.Replace(patch.url, "127.0.0.1", "example.com", 1)
		var dialed string
		h := report.HTTPS{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed = address
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}}
		if code, _, err := patch.sendPatch(t.Context(), h); err != nil || code != http.StatusOK || !strings.HasPrefix(dialed, "example.com:") {
			t.Errorf("%d %v, dialed %s", code, err, dialed)
		}
	})
	t.Run("follows no redirect", func(t *testing.T) {
		other, elsewhere := newServer(t, nil)
		server, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		})
		code, _, err := to(t, server).sendPatch(t.Context(), report.HTTPS{})
		if err != nil || code != http.StatusTemporaryRedirect || len(elsewhere()) != 0 {
			t.Errorf("%d %v, the other server got %+v", code, err, elsewhere())
		}
	})
	t.Run("reads no more of an answer than it needs", func(t *testing.T) {
		server, _ := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			for range 1000 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		code, body, err := to(t, server).sendPatch(t.Context(), report.HTTPS{})
		if err != nil || code != http.StatusForbidden || len(body) > 1<<20 {
			t.Errorf("%d %v, %d bytes", code, err, len(body))
		}
	})
	t.Run("ends when it is cut off", func(t *testing.T) {
		came, over := make(chan struct{}), make(chan struct{})
		server, _ := newServer(t, func(http.ResponseWriter, *http.Request) { close(came); <-over })
		defer close(over)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-came; cancel() }()
		if _, _, err := to(t, server).sendPatch(ctx, report.HTTPS{}); err == nil {
			t.Error("it got an answer")
		}
	})
	for name, mutate := range map[string]func(*testing.T, *httptest.Server, *call){
		"a server of another authority": func(_ *testing.T, _ *httptest.Server, p *call) {
			p.as.Authorities = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
		},
		"no authority":          func(_ *testing.T, _ *httptest.Server, p *call) { p.as.Authorities = nil },
		"a server that is gone": func(_ *testing.T, s *httptest.Server, _ *call) { s.Close() },
		"a server that knows no certificate of the client's kind": func(t *testing.T, _ *httptest.Server, p *call) {
			p.as.Certificate = s.clientCertificate(t, time.Now().Add(-time.Hour))
		},
		"a server in plain text": func(_ *testing.T, _ *httptest.Server, p *call) {
			p.url = strings.Replace(p.url, "https:", "http:", 1)
		},
	} {
		t.Run("brings nothing to "+name, func(t *testing.T) {
			server, requests := newServer(t, nil)
			patch := to(t, server)
			mutate(t, server, &patch)
			code, _, err := patch.sendPatch(t.Context(), report.HTTPS{})
			if len(requests()) != 0 || err == nil && code/100 == 2 {
				t.Errorf("%d %v, got %+v", code, err, requests())
			}
		})
	}
}
