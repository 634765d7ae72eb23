package audit

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Requests counts the requests of a user. Leases are not counted, because leader election is the activity of an
// idle operator; neither are watches, which are long-running.
type Requests struct {
	log    *Log
	user   string
	Reads  int
	Writes int
	// Conflicts are the writes that the API server refused because the object had changed.
	Conflicts int
	// Kinds counts the requests by verb and resource: "patch nodes/status".
	Kinds map[string]int
}

// CountRequests counts the requests of a user from the current position of a log.
func CountRequests(log *Log, user string) *Requests {
	log.only = []byte(user) // most requests come from other users, and there may be many
	return &Requests{log: log, user: user, Kinds: map[string]int{}}
}

// Update counts the requests that were logged since the last call.
func (r *Requests) Update() error {
	events, err := r.log.Next()
	if err != nil {
		return err
	}
	for _, event := range events {
		r.countEvent(event)
	}
	return nil
}

func (r *Requests) countEvent(event Event) {
	if event.User.Username != r.user || event.Verb == "watch" ||
		event.Object.Resource == "leases" && event.Object.APIGroup == "coordination.k8s.io" {
		return
	}
	if event.IsWrite() {
		r.Writes++
		if event.Response.Code == http.StatusConflict {
			r.Conflicts++
		}
	} else {
		r.Reads++
	}
	what := event.Resource()
	if what == "" {
		what, _, _ = strings.Cut(event.URI, "?")
	}
	r.Kinds[event.Verb+" "+what]++
}

// IsWrite reports whether the request is a write.
func (e Event) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// String lists the requests by verb and resource, most frequent first.
func (r *Requests) String() string {
	kinds := slices.SortedFunc(maps.Keys(r.Kinds), func(a, b string) int {
		if r.Kinds[a] != r.Kinds[b] {
			return r.Kinds[b] - r.Kinds[a]
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%d reads, %d writes", r.Reads, r.Writes)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n%4d %s", r.Kinds[kind], kind)
	}
	return b.String()
}
