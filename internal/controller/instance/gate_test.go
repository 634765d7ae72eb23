package instance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestWhoHoldsTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		state v1alpha1.DesiredState // of the other, whose node the operator has made unschedulable; empty: there is no such instance
		want  string
	}{
		"another that is being changed":                                 {v1alpha1.DesiredStateNode, "other"},
		"another that is being removed":                                 {v1alpha1.DesiredStateRemoved, "other"},
		"another that nobody is known of":                               {"", "other"},
		"not another that was left alone in the middle: nobody ends it": {v1alpha1.DesiredStateUnmanaged, machine},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: "other-node", Labels: map[string]string{corev1.LabelOSStable: "windows"},
				Annotations: map[string]string{v1alpha1.AnnotationInstance: "other", v1alpha1.AnnotationCordoned: "true"},
			}})
			if c.state != "" {
				other := ofMachine()
				other.Name, other.Spec.DesiredState = "other", c.state
				if err := x.Client.Create(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			holder, err := x.newScope(ofMachine()).acquireGate(t.Context())
			if err != nil || holder != c.want {
				t.Errorf("the holder is %q (%v), want %q", holder, err, c.want)
			}
		})
	}
}
