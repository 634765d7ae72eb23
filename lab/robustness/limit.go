package robustness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// excessDisruptions checks each new entry in the policy's status: together with this entry, all counting entries must
// be within the limit of the same object. An entry counts until its Node is schedulable again, even if the entry has
// ended before.
func (e Evidence) excessDisruptions() (violations []string) {
	early := map[types.UID]v1alpha1.Disruption{}
	e.replayChanges(func(before *state, c testenv.Change) {
		policy, ok := c.Object.(*v1alpha1.WindowsDisruptionPolicy)
		if !ok {
			return
		}
		before.recordEarlyEnds(early, policy)
		settings, err := disruptionpolicy.Parse(policy.Spec)
		if err != nil {
			return
		}
		for _, d := range policy.Status.Disruptions {
			if before.policy != nil && slices.ContainsFunc(before.policy.Status.Disruptions, func(known v1alpha1.Disruption) bool {
				return known.InstanceUID == d.InstanceUID && known.Since.Equal(&d.Since)
			}) {
				continue
			}
			counting := before.countedDisruptions(d.Since.Time, settings.FailureDeadline, policy, early)
			if limit := settings.MaxUnavailable.Of(len(before.instances)); len(counting) > limit {
				violations = append(violations, fmt.Sprintf("%s: %s are disturbed, and the limit is %d", formatPosition(c),
					strings.Join(counting, ", "), limit))
			}
		}
	})
	return violations
}

// countedDisruptions returns the names of the disrupted nodes at a time.
func (s *state) countedDisruptions(now time.Time, deadline time.Duration, policy *v1alpha1.WindowsDisruptionPolicy,
	early map[types.UID]v1alpha1.Disruption) (names []string) {
	for _, d := range policy.Status.Disruptions {
		if now.Sub(d.Since.Time) < deadline && s.hasInstance(d) {
			names = append(names, fmt.Sprintf("%s (%s)", d.Instance, d.Cause))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(early)) {
		if d := early[uid]; now.Sub(d.Since.Time) < deadline && s.isLeftCordoned(d) {
			names = append(names, fmt.Sprintf("%s (%s, whose entry has ended before)", d.Instance, d.Cause))
		}
	}
	return names
}

// recordEarlyEnds records the entries that end before their nodes are in service again. A node that is being removed
// is not recorded: its entry may end.
func (s *state) recordEarlyEnds(early map[types.UID]v1alpha1.Disruption, policy *v1alpha1.WindowsDisruptionPolicy) {
	for _, d := range policy.Status.Disruptions {
		delete(early, d.InstanceUID)
	}
	if s.policy == nil {
		return
	}
	for _, d := range s.policy.Status.Disruptions {
		if s.isLeftCordoned(d) && !slices.ContainsFunc(policy.Status.Disruptions, func(other v1alpha1.Disruption) bool {
			return other.InstanceUID == d.InstanceUID
		}) {
			early[d.InstanceUID] = d
		}
	}
}

// isLeftCordoned reports whether the Node of an entry is desired and still cordoned by the operator.
func (s *state) isLeftCordoned(d v1alpha1.Disruption) bool {
	node := s.nodes["/"+d.Node]
	if node == nil || !isCordonedByOperator(node) {
		return false
	}
	for _, instance := range s.instances {
		if instance.UID == d.InstanceUID {
			return instance.Spec.DesiredState == v1alpha1.DesiredStateNode
		}
	}
	return false
}

func isCordonedByOperator(node *corev1.Node) bool {
	_, cordonedByOperator := node.Annotations[v1alpha1.AnnotationCordoned]
	return cordonedByOperator && node.Spec.Unschedulable
}
