package apiproxy

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lag answers a list as an API server does whose cache lags behind that of others: a client that starts, or that has
// lost its connection, gets a state from before one that it has seen. Such a list has the resource version 0; one without
// a resource version is of the newest state, and passes. What an informer usually asks for, a watch that begins with a
// list of the newest state, is refused, as by an API server without the feature WatchList (in Kubernetes 1.33, and until
// 1.31, it is off). lag reports whether the request was answered.
func (p *Proxy) lag(w http.ResponseWriter, r *http.Request) bool {
	for _, f := range p.matching(r, func(f Fault) bool { return f.ListsAt != "" && r.Method == http.MethodGet }) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") == "true":
			respond(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ListOptions.meta.k8s.io \"\" is invalid: "+
				"sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
			return true
		case query.Get("resourceVersion") == "0" && !watches(r):
			query.Set("resourceVersion", f.ListsAt)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			r.URL.RawQuery = query.Encode()
		}
	}
	return false
}
