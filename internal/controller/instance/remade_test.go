package instance

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// The cache may still have the deleted instance when the reconcile writes.
func TestReconcile_StatusNotWrittenToRecreatedInstance(t *testing.T) {
	remade := func(t *testing.T) (*trial, *v1alpha1.WindowsInstance, *scope.Scope) {
		t.Helper()
		before := listedInstance()
		before.UID = "before"
		x := newTrial(t, before)
		s := x.newScope(x.getInstance())
		x.sessions.Store(before.Name, s.Session)
		if err := x.Client.Delete(t.Context(), x.getInstance()); err != nil {
			t.Fatal(err)
		}
		after := listedInstance()
		after.UID = "after"
		x.createInstance(after)
		return x, x.getInstance(), s
	}
	t.Run("and nothing follows from it", func(t *testing.T) {
		x, after, s := remade(t)
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Key: "former"}
		if _, err := x.newDependencies().status.Write(t.Context(), s); !apierrors.IsConflict(err) {
			t.Errorf("the write returns %v", err)
		}
		if got := x.getInstance(); got.UID != after.UID || got.ResourceVersion != after.ResourceVersion || got.Status.HostKey != nil {
			t.Errorf("the new instance is %+v", got)
		}
	})
	t.Run("and nothing is done to its host or its Node", func(t *testing.T) {
		x, after, former := remade(t)
		api := x.Client
		x.Client = stale{api, former.Initial}
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(after)}
		for range 3 {
			if _, err := x.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		x.Client = api
		if got := x.getInstance(); x.countDials() > 0 || x.Jobs.CountStarted() > 0 || got.ResourceVersion != after.ResourceVersion {
			t.Errorf("%d connections, %d jobs; the new instance is %+v", x.countDials(), x.Jobs.CountStarted(), got)
		}
	})
	t.Run("which also has nothing of its session", func(t *testing.T) {
		x, after, s := remade(t)
		s.Session.ChangeFailures = 2
		if got := x.getSession(after); got.ChangeFailures != 0 {
			t.Errorf("the session is %+v", got)
		}
	})
}
