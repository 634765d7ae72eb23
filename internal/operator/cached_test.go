package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Without this transform, the images of a thousand nodes after a year would be most of the operator's memory.
func TestCacheOptions_KeepOnlyReadNodeFields(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "win-1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
			Labels: map[string]string{"a": "b"}},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///x"},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"servercore"}}}, Phase: corev1.NodeRunning},
	}
	var kept any = node
	for object, options := range (Config{}).cacheOptions(&unreadableKinds{}).ByObject {
		if _, ofNodes := object.(*corev1.Node); ofNodes {
			var err error
			if kept, err = options.Transform(node); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, ok := kept.(*corev1.Node)
	if !ok || len(got.Status.Images) != 0 || len(got.ManagedFields) != 0 {
		t.Errorf("it keeps %+v", kept)
	}
	if got.Labels["a"] != "b" || got.Spec.ProviderID == "" || got.Status.Phase == "" {
		t.Errorf("it has lost what is read: %+v", got)
	}
}
