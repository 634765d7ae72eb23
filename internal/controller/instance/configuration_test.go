package instance

import (
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// configurationDigest returns the digest of the current configuration of all nodes.
func (x *trial) configurationDigest() string {
	x.t.Helper()
	want := x.newDependencies().specs.ConfigurationDigest(*x.facts)
	if want == "" {
		x.t.Fatal("it is not known")
	}
	return want
}

func TestConfiguration_StatusHasVerifiedDigest(t *testing.T) {
	x, _, gate := nodeInService(t, "None")
	proven := x.configurationDigest()
	if got := x.getInstance().Status.ConfigurationDigest; got != proven {
		t.Fatalf("after it has joined: %q, want %q", got, proven)
	}
	gate.refuseAll(v1alpha1.ReasonCanarySoaking)
	x.facts.Kubelet.Settings = `{"maxPods":77}`
	want := x.configurationDigest()
	instance, _ := x.reconcile()
	if instance.Status.ConfigurationDigest != proven {
		t.Errorf("while it waits: %q, want %q", instance.Status.ConfigurationDigest, proven)
	}
	if last := gate.requests[len(gate.requests)-1]; last.Cause != v1alpha1.CauseConfiguration || last.Configuration != want || last.HostChanged {
		t.Errorf("the gate was asked for %+v, and %q is wanted", last, want)
	}
	gate.closed = false
	instance = x.reconcileUntil("the change", func(i *v1alpha1.WindowsInstance) bool {
		return i.Status.Summary == v1alpha1.ReasonReady && i.Status.ConfigurationDigest != proven
	})
	if instance.Status.ConfigurationDigest != want {
		t.Errorf("when it is done: %q, want %q", instance.Status.ConfigurationDigest, want)
	}
	// An earlier version of the operator did not write the digest.
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.ConfigurationDigest = "" })
	dials := x.countDials()
	if instance, _ = x.reconcile(); instance.Status.ConfigurationDigest != want || x.countDials() > dials {
		t.Errorf("of a node that is as it should be: %q, after %d connections", instance.Status.ConfigurationDigest, x.countDials()-dials)
	}
}

func TestConfiguration_SlotRequestMarksChangedHost(t *testing.T) {
	x, gate := newDrainingTrial(t)
	gate.held = nil
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	s := x.newRespondingScope(&plan.Facts{})
	if o := x.newDependencies().disruptor.AcquireSlot(t.Context(), s, x.getNode(), v1alpha1.CauseConfiguration); o != nil || !gate.requests[0].HostChanged {
		t.Errorf("%+v; the gate was asked for %+v", o, gate.requests)
	}
}

// A node that fails because of new settings blocks the rollout of these settings to other nodes.
func TestConfiguration_FailureRecordedWithNewSettings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*trial)
		want   v1alpha1.DisruptionCause
	}{
		"other settings": {func(x *trial) { x.facts.Kubelet.Settings = `{"maxPods":77}` }, v1alpha1.CauseConfiguration},
		"settings that pods do not feel": {func(x *trial) { x.facts.TrustedCAs = []string{selfSigned(t, "Example CA")} },
			v1alpha1.CauseRepair},
		"the settings that it had": {func(*trial) {}, v1alpha1.CauseRepair},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			instance.Status.Version, instance.Status.ConfigurationDigest = "1.2.3", x.configurationDigest()
			x.asNode(instance, x.key.Hash())
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
			x.breakNode()
			c.change(x)
			s := x.newRespondingScope(&plan.Facts{})
			x.newDependencies().changes.Record(s, x.getNode(), v1alpha1.ReasonChecksFailed, "kubelet: ends at once", "")
			failed := s.Instance.Status.FailedChange
			if failed.Cause != c.want || failed.ConfigurationDigest != x.configurationDigest() {
				t.Errorf("it has failed with %+v", failed)
			}
			changed := nodespec.ChangedServices(instance.Status.ConfigurationDigest, failed.ConfigurationDigest)
			if want := c.want == v1alpha1.CauseConfiguration; slices.Contains(changed, nodespec.ServiceKubelet) != want {
				t.Errorf("changed are %q", changed)
			}
		})
	}
}

// The other nodes wait for the first node with the settings, even while that node is retried for another reason.
func TestConfiguration_FailureClearedOnlyWithItsSettings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*trial)
		stays  bool
	}{
		"an authority that the host is to trust": {func(x *trial) { x.facts.TrustedCAs = []string{selfSigned(t, "Example CA")} }, true},
		"other settings":                         {func(x *trial) { x.facts.Kubelet.Settings = `{"maxPods":78}` }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			instance.Status.Version, instance.Status.ConfigurationDigest = "1.2.3", x.configurationDigest()
			x.asNode(instance, x.key.Hash())
			x.facts.Kubelet.Settings = `{"maxPods":77}`
			failed := x.failedWith(x.getInstance(), v1alpha1.ReasonChecksFailed, 30*time.Minute).Status.FailedChange
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
				s.FailedChange.Cause, s.FailedChange.ConfigurationDigest = v1alpha1.CauseConfiguration, x.configurationDigest()
			})
			if x.reconcile(); x.countDials() > 0 {
				t.Fatalf("%s was not to be tried yet", failed.SpecDigest)
			}
			c.change(x)
			after, _ := x.reconcile()
			if stays := after.Status.FailedChange != nil; stays != c.stays || x.countDials() == 0 {
				t.Errorf("the failure stays: %t; %d connections", stays, x.countDials())
			}
		})
	}
}
