package report

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// APIServer answers requests about the host's Node.
type APIServer interface {
	// Send sends a request, with a strategic merge patch as its body when it is a PATCH. It returns the answer's status
	// code and body, whatever they are. An error means that there is no answer.
	Send(ctx context.Context, as Credentials, method, url string, body []byte) (code int, answer []byte, err error)
}

// Credentials are what the agent and the API server know each other by.
type Credentials struct {
	// Authorities are those that the server's certificate may be of, in PEM.
	Authorities []byte
	// Certificate is the client's, with its key.
	Certificate tls.Certificate
}

// How much of an answer is read. A Node has up to some 50 KB.
const (
	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 1 << 20
)

// HTTPS speaks to a real API server: without a proxy, for none leads to a cluster's internal address, and on a
// connection for each request, for there are few.
type HTTPS struct {
	// Dial opens connections; nil for the system's way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Send implements APIServer. It follows no redirect: the client's certificate is for one server only.
func (h HTTPS) Send(ctx context.Context, as Credentials, method, url string, body []byte) (int, []byte, error) {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(as.Authorities) {
		return 0, nil, errors.New("there is no certificate of an authority for the API server")
	}
	transport := &http.Transport{
		DialContext: h.Dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHeader,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: authorities,
			// Also to a server that does not name the certificate's authority: it may know it all the same.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &as.Certificate, nil },
		},
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make a request: %w", err)
	}
	if request.URL.Scheme != "https" {
		return 0, nil, fmt.Errorf("%s is not https", url)
	}
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "wicd")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBody))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", request.URL.Host, err)
	}
	return response.StatusCode, answer, nil
}
