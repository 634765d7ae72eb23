package robustness

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestTheLimitIsThePolicysWhenANodeComesToIt(t *testing.T) {
	const rule = "no more nodes are disturbed than the policy allows"
	a, b := entry("a", 0), entry("b", time.Minute)
	history(instance("a"), instance("b"), policy(1, a), policy(1, a, b)).expect(t, rule, 1)
	history(instance("a"), instance("b"), policy(1, a), policy(1), policy(1, b)).expect(t, rule, 0)
	history(instance("a"), instance("b"), policy(2, a, b), policy(1, a, b)).expect(t, rule, 0)                  // lowered afterward
	history(instance("a"), instance("b"), policy(1, a), policy(1, a, entry("b", time.Hour))).expect(t, rule, 0) // a has failed by then
	history(instance("b"), policy(1, a, b)).expect(t, rule, 0)                                                  // without an instance, an entry no longer counts
}

func TestAnEntryThatEndsBeforeItsNodeIsInServiceCounts(t *testing.T) {
	const rule = "no more nodes are disturbed than the policy allows"
	stays := func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateNode }
	goes := func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }
	a, b := entry("a", 0), entry("b", time.Minute)
	begun := []client.Object{instance("a", stays), instance("b", stays), node("a"), node("b"), policy(1, a), node("a", cordoned)}
	then := func(more ...client.Object) past { return history(append(begun[:len(begun):len(begun)], more...)...) }
	then(policy(1), policy(1, b)).expect(t, rule, 1)
	then(policy(1, b)).expect(t, rule, 1) // in one write
	then(node("a"), policy(1), policy(1, b)).expect(t, rule, 0)
	then(policy(1), node("a"), policy(1, b)).expect(t, rule, 0)
	then(policy(1), policy(1, entry("a", time.Minute))).expect(t, rule, 0) // it has an entry again
	then(policy(1), policy(1, entry("b", time.Hour))).expect(t, rule, 0)   // it has failed by then
	then(instance("a", goes), policy(1), policy(1, b)).expect(t, rule, 0)  // it is being removed
	then(policy(2), policy(2, b)).expect(t, rule, 0)
}
