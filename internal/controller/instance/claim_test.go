package instance

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// meddling is an API server on which a change happens while instances are listed.
type meddling struct {
	client.Reader
	interfere func()
}

func (m meddling) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := m.Reader.List(ctx, list, options...)
	if _, instances := list.(*v1alpha1.WindowsInstanceList); instances {
		m.interfere()
	}
	return err
}

// Other instances ignore the claim of a paused instance, unless the claim is confirmed.
func TestClaim_NotConfirmedIfInstanceIsPaused(t *testing.T) {
	for name, paused := range map[string]bool{"the instance is paused meanwhile": true, "nothing happens meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, listedInstance())
			x.facts.Platform = "None"
			x.Live = meddling{x.Client, func() {
				if paused {
					x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
				}
			}}
			s := x.newScope(x.getInstance())
			s.Cluster = *x.facts
			s.Host.Facts = &plan.Facts{System: host.SystemInfo{HostName: machine}}
			o := x.runPhase(s, x.newDependencies().nodeNamer.Claim)
			ref := x.getInstance().Status.NodeRef
			if ref == nil || ref.Name != machine || ref.Confirmed == paused || (ref.ClaimedAt != nil) != paused {
				t.Errorf("the claim is %+v", ref)
			}
			if paused && (o == nil || o.Reason != v1alpha1.ReasonWaiting) || !paused && o != nil {
				t.Errorf("in the way is %+v", o)
			}
		})
	}
}

// An operator was killed after it had written the claim of a host that never returned. The entry of the host is
// removed, and the host of the older entry has the name.
func TestClaim_AbandonedClaimBlocksNoOlderInstance(t *testing.T) {
	younger := listedInstance()
	younger.Name, younger.UID, younger.Spec.DesiredState = "younger", "younger-uid", v1alpha1.DesiredStateRemoved
	younger.CreationTimestamp = metav1.NewTime(noon.Add(1))
	younger.Status.NodeRef = &v1alpha1.NodeReference{Name: machine}
	x := newTrial(t, listedInstance())
	x.createInstance(younger)
	x.facts.Platform = "None"
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	s.Host.Facts = &plan.Facts{System: host.SystemInfo{HostName: machine}}
	if o := x.runPhase(s, x.newDependencies().nodeNamer.Claim); o != nil {
		t.Errorf("in the way is %+v", o)
	}
}
