package nodename

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// An entry is listed again after another entry adopted the host.
func TestStillHeld_BoundOrOlderInstanceKeepsNode(t *testing.T) {
	holder := func(name string, age time.Duration) v1alpha1.WindowsInstance {
		instance := newClaimant(name, "win", "key", age)
		instance.Status.NodeRef.Confirmed = true
		return instance
	}
	bound := func(to string) *corev1.Node {
		return nodeNamed("win", func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = to })
	}
	own, older, younger := holder("mine", time.Minute), holder("other", time.Hour), holder("other", time.Second)
	unconfirmed, foreign := holder("other", time.Hour), holder("other", time.Hour)
	unconfirmed.Status.NodeRef.Confirmed = false
	foreign.Status.HostKey = &v1alpha1.HostKey{Key: "another"}
	for name, c := range map[string]struct {
		node  *corev1.Node
		other v1alpha1.WindowsInstance
		keeps bool
	}{
		"the one that the Node is bound to keeps it":                  {bound("mine"), older, true},
		"the other one gives it up":                                   {bound("other"), older, false},
		"without a Node the older keeps it":                           {nil, younger, true},
		"without a Node the younger gives it up":                      {nil, older, false},
		"a Node that is bound to neither goes to the older one":       {bound("third"), older, false},
		"an instance that is being removed has no more right":         {bound("other"), withRemovedState(older), true},
		"nor has one whose claim is not confirmed":                    {bound("other"), unconfirmed, true},
		"an instance of another host is not asked, whatever its name": {bound("other"), foreign, true},
	} {
		t.Run(name, func(t *testing.T) {
			decision := StillHeld(Claim{Instance: own, NodeName: "win", Node: c.node,
				Others: []v1alpha1.WindowsInstance{own, c.other}})
			if decision.Allowed != c.keeps || !c.keeps && decision.Reason != v1alpha1.ReasonDuplicateHost {
				t.Errorf("it is %+v", decision)
			}
		})
	}
}
