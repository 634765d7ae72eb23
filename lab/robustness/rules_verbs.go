package robustness

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// undrainedDisruptions checks the effects of agent commands on pods of nodes in service: continuously Ready shortly
// before, and without the operator's start-up taint. A pod that existed before and is not being deleted soon after
// was disrupted. As for restarts, pods do not count if a user has uncordoned the Node, or if the Node was deleted.
func (e Evidence) undrainedDisruptions() (violations []string) {
	for _, d := range e.PodDisruptions {
		exempt := false
		e.visitStates(d.At.Add(-restartTolerance), d.At, func(s *state) {
			node := s.nodes["/"+d.Node]
			exempt = exempt || s.hasDrainTimeout(d.Node) ||
				node != nil && node.Annotations[v1alpha1.AnnotationCordoned] != "" && !node.Spec.Unschedulable
		})
		serves := false
		var before, after map[string]*corev1.Pod
		e.visitStates(d.At.Add(-minPodAge), d.At, func(s *state) {
			node := s.nodes["/"+d.Node]
			works := node != nil && isNodeReady(node) && !nodeidentity.HasStartupTaint(node)
			if before == nil {
				before, serves = s.podsOn(d.Node), works
			}
			serves = serves && works
		})
		if exempt || !serves {
			continue
		}
		late := d.At.Add(maxPodEndDelay)
		e.visitStates(late, late, func(s *state) { after = s.podsOn(d.Node) })
		for name, pod := range before {
			if survivor := after[name]; survivor != nil && survivor.UID == pod.UID {
				violations = append(violations, fmt.Sprintf("%s: Node %s, verb %s, %s, pod %s", d.At.UTC().Format("15:04:05.000"), d.Node, d.Verb, d.What, name))
			}
		}
	}
	return violations
}

// hasDrainTimeout reports whether the last drain of a Node timed out.
func (s *state) hasDrainTimeout(node string) bool {
	for _, instance := range s.instances {
		if ref := instance.Status.NodeRef; ref != nil && ref.Name == node && instance.Status.FailedChange != nil && instance.Status.FailedChange.DrainTimedOut {
			return true
		}
	}
	return false
}

// overlapTolerance is the maximum delay until the end of a session is recorded on a host, by the clock of
// restartTolerance.
const overlapTolerance = 2 * time.Second

// overlappingVerbs checks for agent commands that an operator starts on a host before the result of another command is
// returned or no longer awaited.
func (e Evidence) overlappingVerbs() (violations []string) {
	verbs := slices.SortedStableFunc(slices.Values(e.Verbs), func(x, y Verb) int { return x.From.Compare(y.From) })
	for i, second := range verbs {
		for _, first := range verbs[:i] {
			if first.Node == second.Node && first.Operator == second.Operator && first.To.Sub(second.From) > overlapTolerance {
				violations = append(violations, fmt.Sprintf("%s: operator %d begins %s on the host of %s, and waits for %s since %s",
					second.From.UTC().Format("15:04:05.000"), second.Operator, second.Name, second.Node, first.Name, first.From.UTC().Format("15:04:05.000")))
			}
		}
	}
	return violations
}
