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
func TestAStatusIsNotWrittenIntoAnotherInstanceOfTheSameName(t *testing.T) {
	remade := func(t *testing.T) (*trial, *v1alpha1.WindowsInstance, *scope.Scope) {
		t.Helper()
		before := listed()
		before.UID = "before"
		x := newTrial(t, before)
		s := x.scope(x.instance())
		x.sessions.Keep(before.Name, s.Session)
		if err := x.Client.Delete(t.Context(), x.instance()); err != nil {
			t.Fatal(err)
		}
		after := listed()
		after.UID = "after"
		x.create(after)
		return x, x.instance(), s
	}
	t.Run("and nothing follows from it", func(t *testing.T) {
		x, after, s := remade(t)
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Key: "former"}
		if _, err := x.rooms().status.Write(t.Context(), s); !apierrors.IsConflict(err) {
			t.Errorf("the write returns %v", err)
		}
		if got := x.instance(); got.UID != after.UID || got.ResourceVersion != after.ResourceVersion || got.Status.HostKey != nil {
			t.Errorf("the new instance is %+v", got)
		}
	})
	t.Run("and nothing is done to its host or its Node", func(t *testing.T) {
		x, after, former := remade(t)
		api := x.Client
		x.Client = stale{api, former.Began}
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(after)}
		for range 3 {
			if _, err := x.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		x.Client = api
		if got := x.instance(); x.dials() > 0 || x.Jobs.Begun() > 0 || got.ResourceVersion != after.ResourceVersion {
			t.Errorf("%d connections, %d jobs; the new instance is %+v", x.dials(), x.Jobs.Begun(), got)
		}
	})
	t.Run("which also has nothing of its session", func(t *testing.T) {
		x, after, s := remade(t)
		s.Session.ChangeFailures = 2
		if got := x.session(after); got.ChangeFailures != 0 {
			t.Errorf("the session is %+v", got)
		}
	})
}
