package robustness

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestRules_LimitAppliesWhenSlotIsAcquired(t *testing.T) {
	const rule = "no more nodes are disturbed than the policy allows"
	a, b := newDisruption("a", 0), newDisruption("b", time.Minute)
	newHistory(newInstance("a"), newInstance("b"), newPolicy(1, a), newPolicy(1, a, b)).expectViolations(t, rule, 1)
	newHistory(newInstance("a"), newInstance("b"), newPolicy(1, a), newPolicy(1), newPolicy(1, b)).expectViolations(t, rule, 0)
	newHistory(newInstance("a"), newInstance("b"), newPolicy(2, a, b), newPolicy(1, a, b)).expectViolations(t, rule, 0)                          // lowered afterward
	newHistory(newInstance("a"), newInstance("b"), newPolicy(1, a), newPolicy(1, a, newDisruption("b", time.Hour))).expectViolations(t, rule, 0) // a has failed by then
	newHistory(newInstance("b"), newPolicy(1, a, b)).expectViolations(t, rule, 0)                                                                // without an instance, an entry no longer counts
}

func TestRules_SlotReleasedBeforeNodeInServiceCounts(t *testing.T) {
	const rule = "no more nodes are disturbed than the policy allows"
	stays := func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateNode }
	removed := func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }
	a, b := newDisruption("a", 0), newDisruption("b", time.Minute)
	begun := []client.Object{newInstance("a", stays), newInstance("b", stays), newNode("a"), newNode("b"), newPolicy(1, a), newNode("a", setCordoned)}
	then := func(more ...client.Object) past { return newHistory(append(begun[:len(begun):len(begun)], more...)...) }
	then(newPolicy(1), newPolicy(1, b)).expectViolations(t, rule, 1)
	then(newPolicy(1, b)).expectViolations(t, rule, 1) // in one write
	then(newNode("a"), newPolicy(1), newPolicy(1, b)).expectViolations(t, rule, 0)
	then(newPolicy(1), newNode("a"), newPolicy(1, b)).expectViolations(t, rule, 0)
	then(newPolicy(1), newPolicy(1, newDisruption("a", time.Minute))).expectViolations(t, rule, 0) // it has an entry again
	then(newPolicy(1), newPolicy(1, newDisruption("b", time.Hour))).expectViolations(t, rule, 0)   // it has failed by then
	then(newInstance("a", removed), newPolicy(1), newPolicy(1, b)).expectViolations(t, rule, 0)    // it is being removed
	then(newPolicy(2), newPolicy(2, b)).expectViolations(t, rule, 0)
}
