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

// APIServer accepts requests about the host's Node.
type APIServer interface {
	// Send sends a request; the body of a PATCH is a strategic merge patch. It returns the status code and body
	// of any response. An error means that there is no response.
	Send(ctx context.Context, as Credentials, method, url string, body []byte) (code int, answer []byte, err error)
}

// Credentials authenticate the agent and the API server to each other.
type Credentials struct {
	// Authorities are the certificate authorities accepted for the server, in PEM.
	Authorities []byte
	// Certificate is the client certificate with its key.
	Certificate tls.Certificate
}

// Maximum sizes of a response. A Node has up to about 50 KB.
const (
	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 1 << 20
)

// HTTPS sends requests to a real API server. It uses no proxy, because no proxy leads to the internal address
// of a cluster, and one connection per request, because requests are rare.
type HTTPS struct {
	// Dial opens connections; nil selects the default dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Send implements APIServer. It follows no redirect: the client certificate is for one server only.
func (h HTTPS) Send(ctx context.Context, as Credentials, method, url string, body []byte) (int, []byte, error) {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(as.Authorities) {
		return 0, nil, errors.New("the certificate authority file of the API server contains no certificate")
	}
	transport := &http.Transport{
		DialContext: h.Dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHeader,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: authorities,
			// Send the certificate even if the server does not name the authority: the server may accept the
			// certificate anyway.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &as.Certificate, nil },
		},
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("create a request: %w", err)
	}
	if request.URL.Scheme != "https" {
		return 0, nil, fmt.Errorf("%s is not an https URL", url)
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
		return 0, nil, fmt.Errorf("read the response of %s: %w", request.URL.Host, err)
	}
	return response.StatusCode, answer, nil
}
