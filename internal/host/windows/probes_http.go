package windows

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
)

// probeLimit is how much of an answer a probe reads, in bytes.
const probeLimit = 1 << 10

// httpGet asks an address on the host. It uses no proxy, follows no redirection, and leaves no connection open. Over
// HTTPS it takes any certificate of the host itself, which names a Service and not the loopback address: nothing secret
// is sent, and nothing but the status believed.
func httpGet(ctx context.Context, url string, certificate []byte) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: %w", url, err)
	}
	own := net.ParseIP(request.URL.Hostname()).IsLoopback() || request.URL.Hostname() == "localhost"
	config := &tls.Config{InsecureSkipVerify: own} //nolint:gosec // G402: only of this very host
	if certificate != nil {
		pair, err := tls.X509KeyPair(certificate, certificate)
		if err != nil {
			return 0, "", fmt.Errorf("GET %s: read the client's certificate: %w", url, err)
		}
		// Also to a server that does not name the certificate's authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: config,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err // says method and address already
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, probeLimit))
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: read the answer: %w", url, err)
	}
	return response.StatusCode, string(data), nil
}
