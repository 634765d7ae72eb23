// Package reporttest has an API server for tests of what reaches one. It stores nothing: it keeps what it was sent.
package reporttest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Received is a request as an API server gets it.
type Received struct {
	Method, Path, Kind, User, Group, Body string
}

// NewServer starts a server that asks for a client's certificate of the signer, and keeps what it gets. The answer may
// be nil. The server ends with the test.
func NewServer(
	t *testing.T, signer *x509.Certificate, answer http.HandlerFunc,
) (server *httptest.Server, requests func() []Received) {
	t.Helper()
	var mu sync.Mutex
	var got []Received
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		subject := r.TLS.PeerCertificates[0].Subject
		mu.Lock()
		got = append(got, Received{
			r.Method, r.URL.Path, r.Header.Get("Content-Type"), subject.CommonName,
			strings.Join(subject.Organization, ","), string(body),
		})
		mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	clients := x509.NewCertPool()
	clients.AddCert(signer)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are what some tests are about
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, func() []Received {
		mu.Lock()
		defer mu.Unlock()
		return append([]Received(nil), got...)
	}
}

// AuthoritiesOf returns, in PEM, what a client needs to trust the server.
func AuthoritiesOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
