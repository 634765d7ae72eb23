package windows

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// clientCertificate returns a certificate with its key in PEM, in the format of the kubelet, and the certificate's
// authority.
func clientCertificate(t *testing.T) (certificate []byte, authorities *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:win"},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	authorities = x509.NewCertPool()
	authorities.AppendCertsFromPEM(public)
	return append(public, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})...), authorities
}

func TestHTTPGet(t *testing.T) {
	requested := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		case "/moved":
			http.Redirect(w, r, "/long", http.StatusFound)
		case "/never":
			close(requested)
			<-r.Context().Done()
		default:
			http.Error(w, "not ok", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	t.Run("an answer is its status and its text", func(t *testing.T) {
		status, body, err := httpGet(t.Context(), server.URL+"/healthz", nil)
		if status != http.StatusServiceUnavailable || body != "not ok\n" || err != nil {
			t.Error(status, body, err)
		}
	})
	t.Run("of a long answer, the first KiB is read", func(t *testing.T) {
		status, body, err := httpGet(t.Context(), server.URL+"/long", nil)
		if status != http.StatusOK || len(body) != 1024 || err != nil {
			t.Error(status, len(body), err)
		}
	})
	t.Run("a redirection is not followed", func(t *testing.T) {
		if status, _, err := httpGet(t.Context(), server.URL+"/moved", nil); status != http.StatusFound || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("no proxy is asked", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
		if status, _, err := httpGet(t.Context(), server.URL, nil); status != http.StatusServiceUnavailable || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("the context ends the wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-requested; cancel() }()
		if _, _, err := httpGet(ctx, server.URL+"/never", nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("the host's own certificate need not name the loopback address", func(t *testing.T) {
		secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		defer secure.Close()
		if status, _, err := httpGet(t.Context(), secure.URL, nil); status != http.StatusNoContent || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("a server that demands a certificate is shown the client's", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		certificate, authorities := clientCertificate(t)
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities}
		server.StartTLS()
		defer server.Close()
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		if status, _, err := httpGet(t.Context(), server.URL, certificate); status != http.StatusNoContent || err != nil {
			t.Error(status, err)
		}
		if _, _, err := httpGet(t.Context(), server.URL, nil); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("without a certificate, the error is %v", err)
		}
		if _, _, err := httpGet(t.Context(), server.URL, []byte("canary")); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("with what is no certificate, the error is %v", err)
		}
	})
	t.Run("what is no address is an error", func(t *testing.T) {
		if _, _, err := httpGet(t.Context(), "http://[::1", nil); err == nil {
			t.Error("accepted")
		}
	})
}
