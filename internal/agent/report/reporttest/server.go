// Package reporttest provides an API server that records requests for tests. The server stores no objects.
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

// Received is a request received by the server.
type Received struct {
	Method, Path, Kind, User, Group, Body string
}

// NewServer starts a server that requires a client certificate of the signer and records requests. The answer
// may be nil. The server is closed at the end of the test.
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
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests expect failed handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, func() []Received {
		mu.Lock()
		defer mu.Unlock()
		return append([]Received(nil), got...)
	}
}

// AuthoritiesOf returns, in PEM, the certificate that a client must trust.
func AuthoritiesOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
