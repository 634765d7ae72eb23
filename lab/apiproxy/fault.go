package apiproxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is one way to spoil what passes. Usually one field is set.
type Fault struct {
	// Delay is how much later watches tell everything, and Hold has them tell nothing while the fault lasts.
	Delay time.Duration
	Hold  bool
	// ListsAt is a resource version; "" for none. Lists that may come from a cache are as they were then. See lagging.go.
	ListsAt string
	// Refuse breaks each connection that a request comes over, and ends all watches.
	Refuse bool
	// Fail answers requests with status 500, and Conflict changes of objects with 409. Neither is passed on.
	Fail, Conflict bool
	// LoseAnswers passes changes of objects on, and breaks the connection instead of answering.
	LoseAnswers bool
	// Every spares requests: only each so many one is spoiled. 0 is 1. Watches are always spoiled.
	Every int
}

type activeFault struct {
	Fault
	resource string
	met      atomic.Int64 // requests that it could have spoiled
}

func (f *activeFault) concerns(resource string) bool {
	return f.resource == "" || f.resource == resource
}

// turn reports whether this request is one to be spoiled.
func (f *activeFault) turn() bool { return f.met.Add(1)%int64(max(1, f.Every)) == 0 }

var errLost = errors.New("the answer is lost")

// matching returns the faults that concern a request and are of a kind.
func (p *Proxy) matching(r *http.Request, kind func(Fault) bool) (found []*activeFault) {
	resource := Resource(r.URL.Path)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.concerns(resource) && kind(f.Fault) {
			found = append(found, f)
		}
	}
	return found
}

// refuse answers a request that is not passed on, and reports whether it is none.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request) bool {
	if len(p.matching(r, func(f Fault) bool { return f.Refuse })) > 0 {
		panic(http.ErrAbortHandler)
	}
	for _, f := range p.matching(r, func(f Fault) bool { return f.Fail || f.Conflict && changes(r) }) {
		switch {
		case !f.turn():
		case f.Fail:
			respond(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out")
			return true
		default:
			respond(w, http.StatusConflict, metav1.StatusReasonConflict,
				"Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again")
			return true
		}
	}
	return false
}

// changes reports whether a request changes an object that is there.
func changes(r *http.Request) bool { return r.Method == http.MethodPut || r.Method == http.MethodPatch }

// watches reports whether a request is a watch.
func watches(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// respond answers as the API server does.
func respond(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: message, Reason: reason, Code: int32(code)}
	_ = json.NewEncoder(w).Encode(status) // the client may have gone
}

// answer spoils what the API server has answered.
func (p *Proxy) answer(response *http.Response) error {
	r := response.Request
	if watches(r) {
		response.Body = p.newWatchBody(response.Body, Resource(r.URL.Path))
		return nil
	}
	if r.Method == http.MethodGet {
		return nil
	}
	for _, f := range p.matching(r, func(f Fault) bool { return f.LoseAnswers }) {
		if f.turn() {
			_ = response.Body.Close() // nobody reads it
			return errLost
		}
	}
	return nil
}
