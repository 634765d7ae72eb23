package test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// The API server replaces the UID in a status patch of a custom resource before it checks the UID. Only the
// resource version prevents a write to another instance of the same name.
func TestStatusWrite_DoesNotReachRecreatedInstance(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{})
	newInstance := func() *v1alpha1.WindowsInstance {
		t.Helper()
		instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "made-twice"},
			Spec: v1alpha1.WindowsInstanceSpec{Address: "10.9.0.200", Source: v1alpha1.Source{ConfigMapKey: "10.9.0.200"}}}
		requireNoError(t, r.Client.Create(t.Context(), instance))
		return instance
	}
	first := newInstance()
	writer := status.Writer{Client: r.Client, Clock: clock.RealClock{}, Namespace: r.Namespace()}
	begin := func(key string) *scope.Scope {
		s := scope.New(first.DeepCopy(), &scope.Session{}, &hostjobs.Host{}, writer.Clock)
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: key, Fingerprint: key}
		return s
	}
	s := begin("first")
	_, err := writer.Write(t.Context(), s)
	requireNoError(t, err)
	late := begin("decided on an older version")
	if _, err := writer.Write(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("the write of an older decision returns %v", err)
	}

	requireNoError(t, r.Client.Delete(t.Context(), first))
	second := newInstance()
	defer func() { requireNoError(t, r.Client.Delete(t.Context(), second)) }()
	s.Instance.Status.HostKey.Key = "still the first"
	if _, err := writer.Write(t.Context(), s); !apierrors.IsConflict(err) {
		t.Errorf("the write returns %v", err)
	}
	got := &v1alpha1.WindowsInstance{}
	requireNoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(second), got))
	if got.UID != second.UID || got.ResourceVersion != second.ResourceVersion || got.Status.HostKey != nil {
		t.Errorf("the second instance is %+v", got)
	}
	forged := second.DeepCopy()
	forged.UID, forged.Status.Summary = first.UID, "Forged"
	if err := r.Client.Status().Patch(t.Context(), forged, client.MergeFrom(second)); err != nil {
		t.Errorf("the API server checks the UID in a patch of the status (%v), which would do", err)
	}
}
