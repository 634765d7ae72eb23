package faultproxy

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// applyStaleList makes lists behave as with an API server that has an outdated cache: a client that starts or has
// lost the connection receives an older state than before. Such a list has the resource version 0; a list without a
// resource version returns the newest state and is forwarded. The usual request of an informer, a watch that begins
// with a list of the newest state, is refused. An API server without the feature WatchList (in Kubernetes 1.33, and
// until 1.31, it is off) also refuses such a watch. applyStaleList reports whether it has sent a response.
func (p *Proxy) applyStaleList(w http.ResponseWriter, r *http.Request) bool {
	for _, f := range p.findFaults(r, func(f Fault) bool { return f.ListsAt != "" && r.Method == http.MethodGet }) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") == "true":
			writeStatus(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ListOptions.meta.k8s.io \"\" is invalid: "+
				"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
			return true
		case query.Get("resourceVersion") == "0" && !isWatchRequest(r):
			query.Set("resourceVersion", f.ListsAt)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			r.URL.RawQuery = query.Encode()
		}
	}
	return false
}
