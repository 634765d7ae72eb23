package byoh

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestReconcile_NamespaceDeletionRemovesNoHost(t *testing.T) {
	for name, c := range map[string]struct {
		deleted bool
		want    v1alpha1.DesiredState
	}{
		"the list alone is deleted":              {false, v1alpha1.DesiredStateRemoved},
		"the list is deleted with its namespace": {true, v1alpha1.DesiredStateNode},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wmco", Finalizers: []string{"kubernetes"}}}
			instance := &v1alpha1.WindowsInstance{
				ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "host",
					Labels: map[string]string{v1alpha1.LabelSource: v1alpha1.SourceConfigMap}},
				Spec: v1alpha1.WindowsInstanceSpec{
					Address: "10.9.0.1", DesiredState: v1alpha1.DesiredStateNode, Source: v1alpha1.Source{ConfigMapKey: "10.9.0.1"},
				},
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(namespace, instance).Build()
			if c.deleted {
				if err := api.Delete(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Client: api, Live: api, Namespace: "wmco", Events: events.NewFakeRecorder(10),
				Clock: clock.RealClock{}}
			request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "wmco", Name: ConfigMapName}}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil {
				t.Fatal(err)
			}
			if instance.Spec.DesiredState != c.want {
				t.Errorf("the host is to be %s, want %s", instance.Spec.DesiredState, c.want)
			}
		})
	}
}
