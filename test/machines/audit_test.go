package machines

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/audit"
)

// trail is the API server's audit log since a moment.
type trail struct {
	lab
	log    *audit.Log
	events []audit.Event
}

// openTrail starts a trail. The control plane must keep an audit log.
func (l lab) openTrail() *trail {
	l.Helper()
	log, err := audit.OpenAtEnd(l.Cluster().AuditLog)
	l.requireNoError(err)
	return &trail{lab: l, log: log}
}

// read returns all events until now.
func (a *trail) read() []audit.Event {
	a.Helper()
	more, err := a.log.Next()
	a.requireNoError(err)
	a.events = append(a.events, more...)
	return a.events
}

// writeRequests returns the operator's write requests until now. It ends the test if the operator has sent no request
// at all.
func (a *trail) writeRequests() (writes []audit.Event) {
	a.Helper()
	operator, seen := audit.ServiceAccount(a.Namespace(), "windows-machine-config-operator"), 0
	for _, e := range a.read() {
		if e.User.Username != operator {
			continue
		}
		if seen++; !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			writes = append(writes, e)
		}
	}
	if seen == 0 {
		a.Fatal("the audit log has nothing of the operator: this test shows nothing")
	}
	return writes
}

// refusedEvictions counts the evictions in a namespace that the API server has refused because of a budget.
func (a *trail) refusedEvictions(namespace string) (n int) {
	a.Helper()
	for _, e := range a.read() {
		if e.Resource() == "pods/eviction" && e.Object.Namespace == namespace && e.Response.Code == 429 {
			n++
		}
	}
	return n
}

// evictionCount counts the requested evictions in a namespace, including refused ones.
func (a *trail) evictionCount(namespace string) (n int) {
	a.Helper()
	for _, e := range a.read() {
		if e.Resource() == "pods/eviction" && e.Object.Namespace == namespace {
			n++
		}
	}
	return n
}

// checkNoWrites checks that the operator wrote neither to an object of the Machine API nor to these nodes.
func (a *trail) checkNoWrites(nodes ...string) {
	a.Helper()
	for _, e := range a.writeRequests() {
		if strings.HasPrefix(e.Object.Resource, "machine") || e.Object.Resource == "nodes" &&
			slices.Contains(nodes, e.Object.Name) {
			a.Errorf("the operator did %s %s %s", e.Verb, e.Resource(), e.Object.Name)
		}
	}
}

// linuxNodes returns the names of the Linux nodes.
func (l lab) linuxNodes() (names []string) {
	l.Helper()
	var nodes corev1.NodeList
	l.requireNoError(l.Client.List(l.Context(), &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"}))
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	if len(names) == 0 {
		l.Fatal("the cluster has no Linux node: this test shows nothing")
	}
	return names
}
