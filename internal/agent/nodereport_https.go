package agent

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

// Patcher changes an object at the API server.
type Patcher interface {
	// Patch sends a merge patch. It returns the answer's status code and the beginning of its body, whatever they are; an error is that there
	// is no answer.
	Patch(ctx context.Context, patch Patch) (code int, body []byte, err error)
}

// Patch is a merge patch of an object, and who sends it to whom.
type Patch struct {
	URL  string
	Body []byte
	// Authorities are those that the server's certificate may be of, in PEM.
	Authorities []byte
	// Certificate is the client's, with its key.
	Certificate tls.Certificate
}

// How much of an answer is read.
const (
	maxAnswerHeader = 64 << 10
	maxAnswerBody   = 64 << 10
)

// HTTPS is the Patcher that speaks to an API server: straight, for no proxy leads to a cluster's internal address, and on a connection for
// each patch, for there are few.
type HTTPS struct {
	// Dial opens connections; nil for the system's way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Patch sends a merge patch. It follows no redirect: the client's certificate is for one server only.
func (h HTTPS) Patch(ctx context.Context, patch Patch) (int, []byte, error) {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(patch.Authorities) {
		return 0, nil, errors.New("there is no certificate of an authority for the API server")
	}
	transport := &http.Transport{
		DialContext: h.Dial, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHeader,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: authorities,
			// Also to a server that does not name the certificate's authority: it may know it all the same.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &patch.Certificate, nil },
		},
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, patch.URL, bytes.NewReader(patch.Body))
	if err != nil {
		return 0, nil, fmt.Errorf("make a request: %w", err)
	}
	if request.URL.Scheme != "https" {
		return 0, nil, fmt.Errorf("%s is not https", patch.URL)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "wicd")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBody))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", request.URL.Host, err)
	}
	return response.StatusCode, body, nil
}
