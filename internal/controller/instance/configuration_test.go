package instance

import (
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// configuration returns the digest of the current configuration of all nodes.
func (x *trial) configuration() string {
	x.t.Helper()
	wanted := x.rooms().specs.Configuration(*x.facts)
	if wanted == "" {
		x.t.Fatal("it is not known")
	}
	return wanted
}

func TestTheStatusHasTheSettingsThatTheNodeWasProvenWith(t *testing.T) {
	x, _, gate := nodeInService(t, "None")
	proven := x.configuration()
	if got := x.instance().Status.ConfigurationDigest; got != proven {
		t.Fatalf("after it has joined: %q, want %q", got, proven)
	}
	gate.shut(v1alpha1.ReasonCanarySoaking)
	x.facts.Kubelet.Settings = `{"maxPods":77}`
	wanted := x.configuration()
	instance, _ := x.reconcile()
	if instance.Status.ConfigurationDigest != proven {
		t.Errorf("while it waits: %q, want %q", instance.Status.ConfigurationDigest, proven)
	}
	if last := gate.asked[len(gate.asked)-1]; last.Cause != v1alpha1.CauseConfiguration || last.Configuration != wanted || last.Begun {
		t.Errorf("the gate was asked for %+v, and %q is wanted", last, wanted)
	}
	gate.closed = false
	instance = x.until("the change", func(i *v1alpha1.WindowsInstance) bool {
		return i.Status.Summary == v1alpha1.ReasonReady && i.Status.ConfigurationDigest != proven
	})
	if instance.Status.ConfigurationDigest != wanted {
		t.Errorf("when it is done: %q, want %q", instance.Status.ConfigurationDigest, wanted)
	}
	// An earlier version of the operator did not write the digest.
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.ConfigurationDigest = "" })
	dials := x.dials()
	if instance, _ = x.reconcile(); instance.Status.ConfigurationDigest != wanted || x.dials() > dials {
		t.Errorf("of a node that is as it should be: %q, after %d connections", instance.Status.ConfigurationDigest, x.dials()-dials)
	}
}

func TestAHostThatIsBeingChangedIsSaidToBe(t *testing.T) {
	x, gate := draining(t)
	gate.held = nil
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	s := x.answered(&plan.Facts{})
	if o := x.rooms().turn.Acquire(t.Context(), s, x.node(), v1alpha1.CauseConfiguration); o != nil || !gate.asked[0].Begun {
		t.Errorf("%+v; the gate was asked for %+v", o, gate.asked)
	}
}

// A node that fails because of new settings blocks the rollout of these settings to other nodes.
func TestANodeThatNewSettingsHaveBrokenHasFailedWithThem(t *testing.T) {
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
			instance := ofMachine()
			instance.Status.Version, instance.Status.ConfigurationDigest = "1.2.3", x.configuration()
			x.asNode(instance, x.key.Hash())
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
			x.breakNode()
			c.change(x)
			s := x.answered(&plan.Facts{})
			x.rooms().changes.Note(s, x.node(), v1alpha1.ReasonChecksFailed, "kubelet: ends at once", "")
			failed := s.Instance.Status.FailedChange
			if failed.Cause != c.want || failed.ConfigurationDigest != x.configuration() {
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
func TestAFailureIsForgottenWithTheSettingsAndNotBefore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*trial)
		stays  bool
	}{
		"an authority that the host is to trust": {func(x *trial) { x.facts.TrustedCAs = []string{selfSigned(t, "Example CA")} }, true},
		"other settings":                         {func(x *trial) { x.facts.Kubelet.Settings = `{"maxPods":78}` }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := ofMachine()
			instance.Status.Version, instance.Status.ConfigurationDigest = "1.2.3", x.configuration()
			x.asNode(instance, x.key.Hash())
			x.facts.Kubelet.Settings = `{"maxPods":77}`
			failed := x.failedWith(x.instance(), v1alpha1.ReasonChecksFailed, 30*time.Minute).Status.FailedChange
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
				s.FailedChange.Cause, s.FailedChange.ConfigurationDigest = v1alpha1.CauseConfiguration, x.configuration()
			})
			if x.reconcile(); x.dials() > 0 {
				t.Fatalf("%s was not to be tried yet", failed.SpecDigest)
			}
			c.change(x)
			after, _ := x.reconcile()
			if stays := after.Status.FailedChange != nil; stays != c.stays || x.dials() == 0 {
				t.Errorf("the failure stays: %t; %d connections", stays, x.dials())
			}
		})
	}
}
