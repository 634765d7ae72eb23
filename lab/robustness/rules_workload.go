package robustness

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// minPodAge is the minimum time of a pod on a node for a restart to affect the pod, and maxPodEndDelay the maximum
// delay until its end is observed; both by the clock of restartTolerance.
const minPodAge, maxPodEndDelay = 5 * time.Second, 30 * time.Second

// restartedUndrained checks restarts with an entry in the policy's status, of hosts with an existing Node that was
// Ready before. A pod that existed before and is not being deleted afterwards has survived the restart. If a user has
// uncordoned a node that the operator drains, new pods may arrive and are ignored. Pods of a deleted Node need no
// drain: their host is no node.
func (e Evidence) restartedUndrained() (violations []string) {
	for _, restart := range e.Restarts {
		gated, uncordoned := false, false
		e.visitStates(restart.At.Add(-restartTolerance), restart.At, func(s *state) {
			node := s.nodes["/"+restart.Node]
			gated = gated || s.hasEntry(restart.Node)
			uncordoned = uncordoned || node != nil && node.Annotations[v1alpha1.AnnotationCordoned] != "" && !node.Spec.Unschedulable
		})
		ready := false
		var before, after map[string]*corev1.Pod
		e.visitStates(restart.At.Add(-minPodAge), restart.At, func(s *state) {
			node := s.nodes["/"+restart.Node]
			if before == nil {
				before, ready = s.podsOn(restart.Node), node != nil && isNodeReady(node)
			}
			ready = ready && node != nil
		})
		if !gated || !ready || uncordoned {
			continue
		}
		late := restart.At.Add(maxPodEndDelay)
		e.visitStates(late, late, func(s *state) { after = s.podsOn(restart.Node) })
		for name, pod := range before {
			if survivor := after[name]; survivor != nil && survivor.UID == pod.UID {
				violations = append(violations, fmt.Sprintf("%s: Node %s, pod %s", restart.At.UTC().Format("15:04:05.000"), restart.Node, name))
			}
		}
	}
	return violations
}

// podsOn returns the workload's pods on a node that are not being deleted.
func (s *state) podsOn(node string) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for name, pod := range s.pods {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			pods[name] = pod
		}
	}
	return pods
}
