package instance

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
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
