package nodeidentity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestIsNodeOwner(t *testing.T) {
	startUp := []corev1.Taint{{Key: v1alpha1.TaintNotReady}}
	known := v1alpha1.NodeReference{Name: "win", UID: "1", Confirmed: true}
	registering := v1alpha1.NodeReference{Name: "win", Confirmed: true}
	for name, c := range map[string]struct {
		ref            *v1alpha1.NodeReference
		bound          string
		taints         []corev1.Taint
		otherInstances []v1alpha1.WindowsInstance
		want           bool
	}{
		"the node that is bound to it":                        {ref: &known, bound: "mine", want: true},
		"the node that is bound to it, when it has forgotten": {bound: "mine", want: true},
		"the node that registered and could not be bound any more": {ref: &registering,
			taints: startUp, want: true},
		"its node, when the kubelet has taken the annotation away": {ref: &known, want: true},
		"its node, when the kubelet says that it is another's":     {ref: &known, bound: "other", want: true},
		"its node, when the kubelet says that it is one's that has another": {ref: &known, bound: "other",
			otherInstances: newNodeHolder("other", "elsewhere", ""), want: true},
		"its node, when another instance that had it goes as well": {ref: &known, bound: "mine",
			otherInstances: withAllRemoved(newNodeHolder("other", "win", "1")), want: true},
		"the node that has registered again": {ref: &v1alpha1.NodeReference{Name: "win",
			UID: "0", Confirmed: true}, taints: startUp, want: true},
		"not the node that another instance of its host goes on with": {ref: &known, bound: "other",
			otherInstances: newNodeHolder("other", "win", "1")},
		"not a node that only says so, and is another's": {bound: "mine",
			otherInstances: newNodeHolder("other", "win", "1")},
		"not a node that only says so, and whose name is another's": {bound: "mine",
			otherInstances: newNodeHolder("other", "win", "")},
		"not the node of another instance": {ref: &registering,
			bound: "other", taints: startUp},
		"not a node whose name is only claimed": {ref: &v1alpha1.NodeReference{Name: "win"},
			taints: startUp},
		"not a node in service that nobody has bound": {ref: &registering},
		"not another machine's node, which has come under the name of its own": {ref: &v1alpha1.NodeReference{Name: "win",
			UID: "0", Confirmed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			own := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
			own.Status.NodeRef = c.ref
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win", UID: "1"}, Spec: corev1.NodeSpec{Taints: c.taints}}
			if c.bound != "" {
				node.Annotations = map[string]string{v1alpha1.AnnotationInstance: c.bound}
			}
			if got := IsNodeOwner(own, node, append(c.otherInstances, *own)); got != c.want {
				t.Errorf("it is %t, want %t", got, c.want)
			}
		})
	}
}

// newNodeHolder returns an instance that has a node.
func newNodeHolder(name, nodeName, uid string) []v1alpha1.WindowsInstance {
	instance := v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	instance.Spec.DesiredState = v1alpha1.DesiredStateNode
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: nodeName, UID: uid, Confirmed: true}
	return []v1alpha1.WindowsInstance{instance}
}

func withAllRemoved(instances []v1alpha1.WindowsInstance) []v1alpha1.WindowsInstance {
	for i := range instances {
		instances[i].Spec.DesiredState = v1alpha1.DesiredStateRemoved
	}
	return instances
}
