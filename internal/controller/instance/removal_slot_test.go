package instance

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// restartsForLong configures a host that must restart to add and to remove the feature Containers. A restart
// takes long.
func restartsForLong(o *fake.Options) {
	o.Clock, _ = o.ProgramClock.(clock.WithTicker) // the clock of the trial
	o.RebootDuration = 20 * time.Second
	o.Features = map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureDisabled}
}

// reconcileRemoval reconciles a removal until the instance is deleted, and calls look after each earlier reconcile.
func (x *trial) reconcileRemoval(inspect func(*v1alpha1.WindowsInstance)) {
	x.t.Helper()
	x.changeSpec(x.getInstance(), setRemoved)
	for range 60 {
		instance, after := x.reconcile()
		if instance == nil {
			return
		}
		inspect(instance)
		x.clock.Step(min(after, time.Minute))
	}
	x.t.Fatalf("the removal does not end: %s", x.getInstance().Status.Summary)
}

func TestRemoval_SlotHeldDuringRestart(t *testing.T) {
	x, _, gate := nodeInService(t, "None", restartsForLong)
	restarts := 0
	x.reconcileRemoval(func(instance *v1alpha1.WindowsInstance) {
		if instance.Status.Summary == v1alpha1.ReasonRebooting {
			restarts++
		}
		if len(gate.held) == 0 {
			t.Errorf("%s: the slot is released", instance.Status.Summary)
		}
	})
	if restarts < 5 {
		t.Fatalf("the host was seen restarting %d times: it was to be away for long", restarts)
	}
	if !slices.Equal(gate.granted, []string{machine}) || !slices.Equal(gate.released, []string{machine}) {
		t.Errorf("the slot was granted to %v and released by %v", gate.granted, gate.released)
	}
}

// The connection may be lost before the agent reports the restart of the host.
func TestRemoval_SlotHeldWhileHostIsUnreachable(t *testing.T) {
	x, h, gate := nodeInService(t, "None", restartsForLong)
	lost := false
	x.reconcileRemoval(func(instance *v1alpha1.WindowsInstance) {
		switch {
		case !lost && instance.Status.Summary == v1alpha1.ReasonRebooting:
			lost = true
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.RestartStartedAt = nil })
		case len(gate.held) == 0:
			t.Errorf("%s: the slot is released", instance.Status.Summary)
		}
	})
	if !lost || len(gate.granted) != 1 {
		t.Errorf("the restart was seen: %t; the slot was granted to %v; verbs %v", lost, gate.granted, h.agentCommands())
	}
}

// Each retry would announce another disruption, and delay other nodes until the connection fails.
func TestRemoval_UnreachableHostAcquiresSlotOnce(t *testing.T) {
	x, gate := newTrial(t), openGate()
	x.Gate = gate
	x.asNode(listedInstance(), x.key.Hash())
	x.host.switchOff(true)
	x.changeSpec(x.getInstance(), setRemoved)
	for range 5 {
		_, after := x.reconcile()
		if len(gate.held) > 0 {
			t.Errorf("other nodes wait for a host that does not answer: %v", gate.held)
		}
		if !x.getNode().Spec.Unschedulable {
			t.Error("the node takes pods, and its host is to be given back")
		}
		x.clock.Step(after)
	}
	if x.countDials() < 5 || len(gate.granted) != 1 {
		t.Errorf("%d connections; the slot was granted to %v", x.countDials(), gate.granted)
	}

	t.Run("and once more when it answers", func(t *testing.T) {
		x.host.switchOff(false)
		gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
		before := len(gate.requests)
		_, after := x.reconcile()
		if len(gate.requests) != before+1 || after != time.Minute {
			t.Errorf("asked %v, next pass after %s", gate.requests, after)
		}
	})
}

// If an administrator has declared a host lost while its kubelet works, nothing else drains the node.
func TestRemoval_NodeOfLostHostIsDrained(t *testing.T) {
	x, gate := newTrial(t), openGate()
	x.Gate = gate
	x.asNode(listedInstance(), "another")
	node := x.getNode()
	node.Spec.Unschedulable = true // cordoned by a user, with pods
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	x.host.switchOff(true)
	if x.reconcile(); x.countDials() == 0 {
		t.Fatal("the host was to be tried")
	}
	x.changeSpec(x.getInstance(), setRemoved)
	x.annotateInstance(v1alpha1.AnnotationForgetHost, "true")
	for range 3 {
		if instance, _ := x.reconcile(); instance == nil {
			break
		}
	}
	if x.getNode() != nil || len(gate.granted) != 1 {
		t.Errorf("the Node is %v; the slot was granted to %v", x.getNode(), gate.granted)
	}
}

// A host that has accepted a restart may close the connection before a reconcile reads the agent's result. R-095
func TestRemoval_NoCommandAfterAcceptedRestart(t *testing.T) {
	x, h, _ := nodeInService(t, "None", restartsForLong, func(o *fake.Options) { o.ShutdownDelay = 8 * time.Second })
	x.ListWaitTimeout = 0 // a reconcile that waits for a list ends early
	x.changeSpec(x.getInstance(), setRemoved)
	reconcile := func() {
		t.Helper()
		if _, err := x.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(listedInstance())}); err != nil {
			t.Fatal(err)
		}
	}
	restarts := h.machine.Journal().Count(fake.KindReboot)
	for h.machine.Journal().Count(fake.KindReboot) == restarts {
		reconcile()
		x.awaitJobs()
	}
	before := len(h.agentCommands())
	reconcile()
	connection := x.Jobs.HostFor(x.getInstance()).Connection
	h.server.CutConnections()
	if connection != nil {
		<-connection.Done()
	}
	for deadline := time.Now().Add(wallClockTimeout); x.getInstance().Status.RestartStartedAt == nil && len(h.agentCommands()) == before && time.Now().Before(deadline); {
		reconcile()
		x.awaitJobs()
	}
	if more := h.agentCommands()[before:]; len(more) > 0 || x.getInstance().Status.RestartStartedAt == nil {
		t.Errorf("after its answer it was told to %q, and the status says %s", more, x.getInstance().Status.Summary)
	}
}
