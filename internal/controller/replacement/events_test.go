package replacement

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// client-go treats events with the same action and reason about the same objects as one event, regardless of their
// text.
func TestReplacementPending_NewReasonIsNewEvent(t *testing.T) {
	r, machine, instance := &Reconciler{}, &machinev1beta1.Machine{}, &v1alpha1.WindowsInstance{}
	waits := func(reason, cause string) recorder.Event {
		return r.replacementPending(v1alpha1.CauseKeyChange, machine, instance, "", reason, cause)
	}
	paused, spent := waits(v1alpha1.ReasonDisruptionsPaused, "the policy is paused"), waits(v1alpha1.ReasonMaxUnavailableReached,
		"another node is being replaced")
	if paused.Action == spent.Action {
		t.Errorf("both have the action %s: the second would not be recorded", paused.Action)
	}
}
