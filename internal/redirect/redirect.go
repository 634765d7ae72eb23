// Package redirect makes clients of the API server refuse redirects.
package redirect

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// maxLocation is the maximum length of a redirect's target in an error, in bytes.
const maxLocation = 256

// Refuse makes every client of a configuration fail on a redirect instead of following it. The API server
// forwards redirects of a kubelet to its own clients, and client-go adds the user's credentials to each
// request, regardless of the target. Sources: k8s.io/kubernetes, pkg/registry/core/node/rest/proxy.go, where
// ProxyREST sets no RejectForwardingRedirects; k8s.io/client-go, transport/round_trippers.go.
func Refuse(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusingTransport{next} })
}

// Error is a redirect that was not followed.
type Error struct {
	// Status is the status line of the response, such as 302 Found.
	Status   string
	location string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("the server returned %s, a redirect to %q, which is not followed", sanitize.Plain(e.Status, maxLocation), sanitize.Plain(e.location, maxLocation))
}

// refusingTransport returns an error for a redirect.
type refusingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t refusingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || !isRedirect(response.StatusCode) {
		return response, err
	}
	_ = response.Body.Close()
	return nil, &Error{Status: response.Status, location: response.Header.Get("Location")}
}

// WrappedRoundTripper implements net.RoundTripperWrapper of k8s.io/apimachinery.
func (t refusingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isRedirect reports whether http.Client follows a response with this status.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}
