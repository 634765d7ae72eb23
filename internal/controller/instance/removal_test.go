package instance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestWhichNodesGoWithAnInstance(t *testing.T) {
	joining := corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.TaintNotReady}}}
	for name, c := range map[string]struct {
		bound     string
		spec      corev1.NodeSpec
		confirmed bool
		want      bool
	}{
		"the node that is bound to it":                             {bound: "mine", want: true},
		"not the node of another instance":                         {bound: "other", spec: joining, confirmed: true},
		"the node that registered and could not be bound any more": {spec: joining, confirmed: true, want: true},
		"not a node whose name is only claimed":                    {spec: joining},
		"not a node in service that nobody has bound":              {confirmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
			instance.Status.NodeRef = &v1alpha1.NodeReference{Name: "win", Confirmed: c.confirmed}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win"}, Spec: c.spec}
			if c.bound != "" {
				node.Annotations = map[string]string{v1alpha1.AnnotationInstance: c.bound}
			}
			if got := (&scope{instance: instance}).owns(node); got != c.want {
				t.Errorf("owns is %t, want %t", got, c.want)
			}
		})
	}
}
