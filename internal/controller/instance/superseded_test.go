package instance

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// Somebody deletes the instance of a host that is being removed, and lists the host again: what was found out for the
// removal must not get into the new instance.
func TestAnInstanceThatWasMadeAgainGetsNothingOfTheOneBefore(t *testing.T) {
	before := listed()
	before.UID = "before"
	before.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
	remove(before)
	after := listed()
	after.UID = "after"
	x := newTrial(t, after, readyNode("abc"))
	x.Live = stale{x.Client, before}
	x.reconcile()
	if got := x.instance(); got.UID != "after" ||
		!equality.Semantic.DeepEqual(got.Status, v1alpha1.WindowsInstanceStatus{}) {
		t.Errorf("the new instance is %+v", got.Status)
	}
	if x.node() == nil || x.node().Spec.Unschedulable {
		t.Errorf("the Node is %+v", x.node())
	}
}

// The cache may still have the deleted instance when the pass writes.
func TestAStatusIsNotWrittenIntoAnotherInstanceOfTheSameName(t *testing.T) {
	remade := func(t *testing.T) (*trial, *v1alpha1.WindowsInstance, *scope.Scope) {
		t.Helper()
		before := listed()
		before.UID = "before"
		x := newTrial(t, before)
		s := x.scope(x.instance())
		if err := x.Client.Delete(t.Context(), x.instance()); err != nil {
			t.Fatal(err)
		}
		after := listed()
		after.UID = "after"
		x.create(after)
		return x, x.instance(), s
	}
	t.Run("and the pass writes nothing more", func(t *testing.T) {
		x, after, s := remade(t)
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Key: "former"}
		writer := x.rooms().status
		if err := writer.Patch(t.Context(), s); !apierrors.IsConflict(err) {
			t.Errorf("the write returns %v", err)
		}
		if err := writer.Finish(t.Context(), s); err != nil {
			t.Error(err)
		}
		if got := x.instance(); got.UID != after.UID || got.ResourceVersion != after.ResourceVersion || got.Status.HostKey != nil {
			t.Errorf("the new instance is %+v", got)
		}
	})
	t.Run("which also has nothing of its session", func(t *testing.T) {
		x, after, s := remade(t)
		s.Session.ChangeFailures = 2
		if got := x.session(after); got.ChangeFailures != 0 {
			t.Errorf("the session is %+v", got)
		}
	})
	t.Run("while another writer of the same instance delays no write", func(t *testing.T) {
		x := newTrial(t, listed())
		s := x.scope(x.instance())
		x.annotate(v1alpha1.AnnotationRetry, "now")
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Key: "pinned"}
		if err := x.rooms().status.Patch(t.Context(), s); err != nil {
			t.Error(err)
		}
		if got := x.instance(); got.Status.HostKey == nil || got.Annotations[v1alpha1.AnnotationRetry] != "now" ||
			s.Stored.ResourceVersion != got.ResourceVersion {
			t.Errorf("the instance is %+v, and %+v is known", got, s.Stored)
		}
	})
}
