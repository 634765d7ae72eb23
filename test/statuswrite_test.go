package test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// The API server replaces the UID in a patch of the status of a custom resource before it checks the UID, so only the
// version keeps a write out of another instance of the same name.
func TestTheStatusOfADeletedInstanceDoesNotReachTheNextOne(t *testing.T) {
	r := installed(t, rig.Options{})
	made := func() *v1alpha1.WindowsInstance {
		t.Helper()
		instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "made-twice"},
			Spec: v1alpha1.WindowsInstanceSpec{Address: "10.9.0.200", Source: v1alpha1.Source{ConfigMapKey: "10.9.0.200"}}}
		must(t, r.Client.Create(t.Context(), instance))
		return instance
	}
	first := made()
	writer := status.Writer{Client: r.Client, Live: r.Client, Clock: clock.RealClock{}, Namespace: r.Namespace()}
	s := scope.New(first.DeepCopy(), &scope.Session{})

	annotated := first.DeepCopy()
	annotated.Annotations = map[string]string{corev1.LabelHostname: "of a user"}
	must(t, r.Client.Patch(t.Context(), annotated, client.MergeFrom(first)))
	s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: "first", Fingerprint: "first"}
	must(t, writer.Patch(t.Context(), s)) // another writer delays nothing

	must(t, r.Client.Delete(t.Context(), first))
	second := made()
	defer func() { must(t, r.Client.Delete(t.Context(), second)) }()
	s.Instance.Status.HostKey.Key = "still the first"
	if err := writer.Patch(t.Context(), s); !apierrors.IsConflict(err) || !s.Silent {
		t.Errorf("the write returns %v", err)
	}
	got := &v1alpha1.WindowsInstance{}
	must(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(second), got))
	if got.UID != second.UID || got.ResourceVersion != second.ResourceVersion || got.Status.HostKey != nil {
		t.Errorf("the second instance is %+v", got)
	}
	forged := second.DeepCopy()
	forged.UID, forged.Status.Summary = first.UID, "Forged"
	if err := r.Client.Status().Patch(t.Context(), forged, client.MergeFrom(second)); err != nil {
		t.Errorf("the API server checks the UID in a patch of the status (%v), which would do", err)
	}
}
