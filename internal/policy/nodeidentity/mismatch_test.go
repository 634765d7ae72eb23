package nodeidentity

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestHostMismatch(t *testing.T) {
	ready := nodeNamed("a", func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	broken := nodeNamed("a", nil)
	other := v1alpha1.WindowsInstance{Status: v1alpha1.WindowsInstanceStatus{
		NodeRef: &v1alpha1.NodeReference{Name: "b", Confirmed: true, UID: "2"}}}
	other.Name, other.Spec.Address = "other", "10.9.0.2"
	known := v1alpha1.NodeReference{Name: "a", Confirmed: true, UID: "1", MachineID: "A"}
	registering := v1alpha1.NodeReference{Name: "a", Confirmed: true}
	unrecorded := v1alpha1.NodeReference{Name: "a", Confirmed: true, UID: "1"}
	for name, c := range map[string]struct {
		ref            *v1alpha1.NodeReference
		reached        ReachedHost
		node           *corev1.Node
		otherInstances []v1alpha1.WindowsInstance
		want           string // part of the sentence; empty for no mismatch
	}{
		"the host that is configured as the Node": {ref: &known, reached: ReachedHost{"A", "a"}, node: ready},
		"the host that was reinstalled and is configured as the Node again": {ref: &known,
			reached: ReachedHost{"new", "a"}, node: ready},
		"the host that is restored already": {ref: &known, reached: ReachedHost{"A", ""}, node: ready},
		"the host that was reinstalled":     {ref: &known, reached: ReachedHost{"new", ""}, node: broken},
		"the host of a Node that is gone":   {ref: &known, reached: ReachedHost{"new", ""}},
		"any host of an instance without a Node": {reached: ReachedHost{"B", "b"}, node: ready,
			otherInstances: []v1alpha1.WindowsInstance{other}},
		"a host without a recorded machine ID":           {ref: &unrecorded, reached: ReachedHost{"new", ""}, node: ready},
		"a host that was configured under a former name": {ref: &registering, reached: ReachedHost{"A", "former"}},
		"not the host of another instance": {ref: &known, reached: ReachedHost{"B", "b"}, node: broken,
			otherInstances: []v1alpha1.WindowsInstance{other}, want: "as Node b of WindowsInstance other (10.9.0.2). It is not the host of Node a."},
		"not a clone with the same machine ID that is another's": {ref: &known, reached: ReachedHost{"A", "b"},
			otherInstances: []v1alpha1.WindowsInstance{other}, want: "WindowsInstance other"},
		"not the host of another instance, while the Node is not registered": {ref: &registering,
			reached: ReachedHost{"B", "b"}, otherInstances: []v1alpha1.WindowsInstance{other}, want: "WindowsInstance other"},
		"not the host of a Node without an instance": {ref: &known, reached: ReachedHost{"B", "b"},
			want: "is configured as Node b. It is not the host of Node a."},
		"not another machine while the Node is Ready": {ref: &known, reached: ReachedHost{"B", ""}, node: ready,
			want: "Node a is Ready: the host of the Node runs at another address"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.WindowsInstance{}
			instance.Name, instance.Spec.Address = "mine", "10.9.0.1"
			instance.Status.NodeRef = c.ref
			got := HostMismatch(instance, c.reached, c.node, append(c.otherInstances, *instance))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
