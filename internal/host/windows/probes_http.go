package windows

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
)

// probeLimit is the maximum number of response bytes that a probe reads.
const probeLimit = 1 << 10

// httpGet sends a GET request to an address on the host. Proxies are not used, redirects are not followed, and no
// connection stays open. Over HTTPS, httpGet accepts any certificate of the host itself, because the certificate
// names a Service instead of the loopback address. The request contains no secret, and only the status is trusted.
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
			return 0, "", fmt.Errorf("GET %s: parse the client certificate: %w", url, err)
		}
		// The certificate is sent even if the server does not list its authority.
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
		return 0, "", err // already contains method and address
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, probeLimit))
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: read the response: %w", url, err)
	}
	return response.StatusCode, string(data), nil
}
