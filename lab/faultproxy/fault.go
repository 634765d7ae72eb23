package faultproxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault configures the injected fault. Usually one field is set.
type Fault struct {
	// Delay delays all watch events, and Hold stops watch events while the fault is active.
	Delay time.Duration
	Hold  bool
	// ListsAt is a resource version; "" for none. Lists that may come from a cache return the state at this
	// version. See stalelist.go.
	ListsAt string
	// Refuse closes the connection of each request and ends all watches.
	Refuse bool
	// Fail responds to requests with status 500, and Conflict responds to changes of objects with 409. Neither
	// request is forwarded.
	Fail, Conflict bool
	// LoseAnswers forwards changes of objects and closes the connection instead of returning the response.
	LoseAnswers bool
	// Every limits the fault to every n-th request. 0 is 1. Watches are always affected.
	Every int
}

type activeFault struct {
	Fault
	resource string
	met      atomic.Int64 // requests that matched the fault
}

func (f *activeFault) isForResource(resource string) bool {
	return f.resource == "" || f.resource == resource
}

// isNthRequest reports whether this request is the n-th one.
func (f *activeFault) isNthRequest() bool { return f.met.Add(1)%int64(max(1, f.Every)) == 0 }

var errLost = errors.New("the answer is lost")

// findFaults returns the active faults of a kind for a request.
func (p *Proxy) findFaults(r *http.Request, kind func(Fault) bool) (found []*activeFault) {
	resource := Resource(r.URL.Path)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.isForResource(resource) && kind(f.Fault) {
			found = append(found, f)
		}
	}
	return found
}

// refuseRequest responds to a request that is not forwarded, and reports whether it did.
func (p *Proxy) refuseRequest(w http.ResponseWriter, r *http.Request) bool {
	if len(p.findFaults(r, func(f Fault) bool { return f.Refuse })) > 0 {
		panic(http.ErrAbortHandler)
	}
	for _, f := range p.findFaults(r, func(f Fault) bool { return f.Fail || f.Conflict && isUpdateRequest(r) }) {
		switch {
		case !f.isNthRequest():
		case f.Fail:
			writeStatus(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out")
			return true
		default:
			writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict,
				"Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again")
			return true
		}
	}
	return false
}

// isUpdateRequest reports whether a request changes an existing object.
func isUpdateRequest(r *http.Request) bool {
	return r.Method == http.MethodPut || r.Method == http.MethodPatch
}

// isWatchRequest reports whether a request is a watch.
func isWatchRequest(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// writeStatus sends a response in the form of the API server.
func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: message, Reason: reason, Code: int32(code)}
	_ = json.NewEncoder(w).Encode(status) // the client may have disconnected
}

// modifyResponse applies faults to a response of the API server.
func (p *Proxy) modifyResponse(response *http.Response) error {
	r := response.Request
	if isWatchRequest(r) {
		response.Body = p.newWatchBody(response.Body, Resource(r.URL.Path))
		return nil
	}
	if r.Method == http.MethodGet {
		return nil
	}
	for _, f := range p.findFaults(r, func(f Fault) bool { return f.LoseAnswers }) {
		if f.isNthRequest() {
			_ = response.Body.Close() // the body is unused
			return errLost
		}
	}
	return nil
}
