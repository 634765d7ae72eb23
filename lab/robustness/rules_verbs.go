package robustness

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// disturbedUndrained looks at what verbs do to pods on nodes in service: Ready all the time shortly before, and without the
// operator's start-up taint. A pod that was there before, and is not asked to end soon after, was disturbed. As for
// restarts, pods count neither where a user lets them come, nor on a Node that was deleted.
func (e Evidence) disturbedUndrained() (broken []string) {
	for _, d := range e.Disturbances {
		exempt := false
		e.during(d.At.Add(-restartTolerance), d.At, func(s *state) {
			node := s.nodes["/"+d.Node]
			exempt = exempt || s.drainTimedOut(d.Node) ||
				node != nil && node.Annotations[v1alpha1.AnnotationCordoned] != "" && !node.Spec.Unschedulable
		})
		serves := false
		var before, after map[string]*corev1.Pod
		e.during(d.At.Add(-lifeBefore), d.At, func(s *state) {
			node := s.nodes["/"+d.Node]
			works := node != nil && nodeReady(node) && !nodeidentity.Unproven(node)
			if before == nil {
				before, serves = s.podsOn(d.Node), works
			}
			serves = serves && works
		})
		if exempt || !serves {
			continue
		}
		late := d.At.Add(lifeAfter)
		e.during(late, late, func(s *state) { after = s.podsOn(d.Node) })
		for name, pod := range before {
			if survivor := after[name]; survivor != nil && survivor.UID == pod.UID {
				broken = append(broken, fmt.Sprintf("%s: Node %s, verb %s, %s, pod %s", d.At.UTC().Format("15:04:05.000"), d.Node, d.Verb, d.What, name))
			}
		}
	}
	return broken
}

// drainTimedOut reports whether the last drain of a Node ended with its time.
func (s *state) drainTimedOut(node string) bool {
	for _, instance := range s.instances {
		if ref := instance.Status.NodeRef; ref != nil && ref.Name == node && instance.Status.FailedChange != nil && instance.Status.FailedChange.DrainTimedOut {
			return true
		}
	}
	return false
}

// overlapTolerance is how late the end of a session may be noted on a host, by the clock of restartTolerance.
const overlapTolerance = 2 * time.Second

// overlapping looks at verbs that an operator begins on a host before it has the answer of another one, or has given it up.
func (e Evidence) overlapping() (broken []string) {
	verbs := slices.SortedStableFunc(slices.Values(e.Verbs), func(x, y Verb) int { return x.From.Compare(y.From) })
	for i, second := range verbs {
		for _, first := range verbs[:i] {
			if first.Node == second.Node && first.Operator == second.Operator && first.To.Sub(second.From) > overlapTolerance {
				broken = append(broken, fmt.Sprintf("%s: operator %d begins %s on the host of %s, and waits for %s since %s",
					second.From.UTC().Format("15:04:05.000"), second.Operator, second.Name, second.Node, first.Name, first.From.UTC().Format("15:04:05.000")))
			}
		}
	}
	return broken
}
