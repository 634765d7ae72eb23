package disruption

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Observe returns the nodes of a pool with the observed times of their changes, and the records that persist these
// times. Decisions do not depend on a host's clock: the clock may be wrong, and a kubelet may report any time.
//
// before are the records of the last observation. resumed is true for the first observation of a process: only then
// does a kubelet time that differs from the recorded one mean that the node changed in between. In a running process
// it means nothing: otherwise a node that reported a different time at each observation would never be overdue.
func Observe(
	pool NodePool, before []v1alpha1.ObservedNode, resumed bool, settings Settings, now time.Time,
) (nodes []Node, observed []v1alpha1.ObservedNode) {
	known := map[string]v1alpha1.ObservedNode{}
	for _, record := range before {
		known[record.Instance] = record
	}
	for _, n := range pool.Nodes {
		record, found := known[n.Instance]
		found = found && record.InstanceUID == n.UID
		since, keep := n.observedSince(record, found, resumed, settings, now)
		n.Since = laterTime(n.Since, since.Time)
		if n.Since.After(now) { // the operator's own clock was set back
			n.Since = now
		}
		if keep {
			observed = append(observed, v1alpha1.ObservedNode{Instance: n.Instance, InstanceUID: n.UID, Ready: n.Ready,
				Since: since, KubeletTransitionTime: n.Reported})
		}
		nodes = append(nodes, n)
	}
	return nodes, observed
}

// observedSince returns the time since which the operator observes the node's current state, and whether to record
// that time. It returns zero if the operator has always observed this state. A Ready node is recorded for as long as
// canarySoak could still count from that time.
func (n Node) observedSince(
	record v1alpha1.ObservedNode, found, resumed bool, settings Settings, now time.Time,
) (since metav1.Time, keep bool) {
	if !n.Ready && !n.Since.IsZero() || n.Ready && !found {
		return metav1.Time{}, false
	}
	since = metav1.NewTime(now)
	changed := record.Ready != n.Ready || resumed && !record.KubeletTransitionTime.Equal(n.Reported)
	if found && !changed && !record.Since.After(now) {
		since = record.Since
	}
	return since, !n.Ready || now.Sub(since.Time) < settings.CanarySoak
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
