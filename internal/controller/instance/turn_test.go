package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// changeNode changes the Node, as another client does.
func (x *trial) changeNode(change func(*corev1.Node)) {
	x.t.Helper()
	node := x.getNode()
	change(node)
	if err := x.Client.Update(x.t.Context(), node); err != nil {
		x.t.Fatal(err)
	}
}

// changeStatus changes the status of the instance.
func (x *trial) changeStatus(change func(*v1alpha1.WindowsInstanceStatus)) {
	x.t.Helper()
	instance := x.getInstance()
	change(&instance.Status)
	if err := x.Client.Status().Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
}

// forgetHostKey removes the pinned host key from the instance and its Node.
func (x *trial) forgetHostKey() {
	x.t.Helper()
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.HostKey = nil })
	x.changeNode(withoutAnnotation(v1alpha1.AnnotationHostKey))
	x.changeNode(withoutAnnotation(v1alpha1.AnnotationHostKeyType))
}

func requestReboot(node *corev1.Node) {
	node.Annotations[v1alpha1.AnnotationRebootRequired] = "patches"
}

// setCordoned sets the state of a node with a drain that began at noon.
func setCordoned(node *corev1.Node) {
	node.Spec.Unschedulable = true
	node.Annotations[v1alpha1.AnnotationCordoned] = noon.UTC().Format(time.RFC3339)
}

// newDrainingTrial returns a trial during the drain for a change of the host, which is still unchanged.
func newDrainingTrial(t *testing.T) (*trial, *trialGate) {
	t.Helper()
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	gate := openGate()
	x.Gate = gate
	gate.held = []string{machine}
	x.changeNode(setCordoned)
	return x, gate
}

// checkInService checks that the node accepts pods again and holds no slot.
func (x *trial) checkInService(gate *trialGate) {
	x.t.Helper()
	node := x.getNode()
	if drained, recorded := node.Annotations[v1alpha1.AnnotationDrained]; recorded {
		x.t.Errorf("the record of the drain is still %q", drained)
	}
	if _, cordonedByOperator := node.Annotations[v1alpha1.AnnotationCordoned]; cordonedByOperator || node.Spec.Unschedulable || len(gate.held) > 0 {
		x.t.Errorf("unschedulable %t, noted as the operator's %t, held %v", node.Spec.Unschedulable, cordonedByOperator, gate.held)
	}
}

func TestSlot_ReleasedIfHostCannotBeChanged(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"the instance is paused": func(x *trial) {
			x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
		},
		"the key is gone": func(x *trial) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: sshkeysecret.SecretName}}
			if err := x.Client.Delete(x.t.Context(), secret); err != nil {
				x.t.Fatal(err)
			}
		},
		"its Machine is to be replaced": func(x *trial) {
			x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.UpgradeStrategy = v1alpha1.UpgradeReplace })
		},
		"its Machine is to be left alone": func(x *trial) {
			x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged })
		},
		"the cluster cannot have Windows nodes any more": func(x *trial) { x.facts.Network.HybridOverlay = false },
		"the host does not answer":                       func(x *trial) { x.host.switchOff(true) },
		"the host refuses the key":                       func(x *trial) { x.host.authorizeKeys() },
		"the change is not wanted any more":              func(x *trial) { x.facts.Kubelet.ClusterDomain = "cluster.local" },
	} {
		t.Run(name, func(t *testing.T) {
			x, gate := newDrainingTrial(t)
			change(x)
			x.reconcile()
			x.checkInService(gate)
			version := x.getNode().ResourceVersion
			requests := len(gate.requests)
			x.reconcile()
			if x.getNode().ResourceVersion != version || len(gate.requests) != requests {
				t.Errorf("the next pass writes the Node again, or asks: %v", gate.requests[requests:])
			}
		})
	}
	t.Run("but a user's own cordon stays", func(t *testing.T) {
		x, gate := newDrainingTrial(t)
		x.changeNode(func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationCordoned) })
		x.host.switchOff(true)
		x.reconcile()
		if !x.getNode().Spec.Unschedulable || len(gate.held) > 0 {
			t.Errorf("unschedulable %t, held %v", x.getNode().Spec.Unschedulable, gate.held)
		}
	})
	t.Run("but not one whose host was begun with", func(t *testing.T) {
		x, gate := newDrainingTrial(t)
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
		x.host.switchOff(true)
		x.reconcile()
		if !x.getNode().Spec.Unschedulable || len(gate.held) != 1 {
			t.Errorf("unschedulable %t, held %v", x.getNode().Spec.Unschedulable, gate.held)
		}
	})
}

// The connection of an agent command may be lost while the command continues, and two operators may work for a
// moment.
func TestSlot_HeldWhileAgentIsBusy(t *testing.T) {
	x, gate := newDrainingTrial(t)
	s := x.newScope(x.getInstance())
	busy := s.HandleFailure(v1alpha1.ConditionUpToDate, &agentapi.Failure{Reason: agentapi.ReasonAgentBusy,
		Message: "the agent's verb apply has been at work"})
	busy.Phase = "install"
	if o := x.newDependencies().disruptor.ReleaseUnusedSlot(t.Context(), s, drain.SlotPolicy{}, busy); o != busy {
		t.Errorf("the obstacle is %v", o)
	}
	if !x.getNode().Spec.Unschedulable || len(gate.held) != 1 {
		t.Errorf("unschedulable %t, held %v", x.getNode().Spec.Unschedulable, gate.held)
	}
}

// The list of the gate may have been lost, or the slot may have expired.
func TestSlot_RefusedNodeWithoutSlotInService(t *testing.T) {
	x, gate := newDrainingTrial(t)
	gate.held = nil
	gate.refuseAll(v1alpha1.ReasonDisruptionsPaused)
	x.changeNode(requestReboot)
	x.reconcile()
	x.checkInService(gate)
}

func TestSlot_NotHeldToRebootUnreachableHost(t *testing.T) {
	for name, works := range map[string]bool{"its node works": true, "its node does not work": false} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			gate := openGate()
			x.Gate = gate
			x.asNode(machineInstance(), x.key.Hash())
			x.changeNode(requestReboot)
			if !works {
				x.breakNode()
			}
			x.host.switchOff(true)
			for range 3 {
				x.reconcile()
				x.checkInService(gate)
			}
			if len(gate.requests) > 2 || x.countDials() < 3 { // one request completes the started change
				t.Errorf("asked %v, %d connections", gate.requests, x.countDials())
			}
		})
	}
}

func TestSlot_NotReacquiredWhileHostIsUnreachable(t *testing.T) {
	x, gate := newDrainingTrial(t)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.breakNode()
	x.host.switchOff(true)
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	s.Session.PendingDisruption = spec.Digest()
	x.reconcile()
	gate.held = nil // its time has passed
	x.reconcile()
	if len(gate.held) > 0 {
		t.Errorf("it asked again: %v", gate.requests)
	}
}

// newRespondingScope returns a scope for a host that has responded.
func (x *trial) newRespondingScope(facts *plan.Facts) *scope.Scope {
	x.t.Helper()
	s := x.newScope(x.getInstance())
	s.Cluster, s.Key = *x.facts, x.key
	x.newDependencies().settings.reconcile(x.t.Context(), s)
	s.Host.Facts = facts
	return s
}

func TestSlot_RepairRequestsOnlyMissingSlot(t *testing.T) {
	x, gate := newDrainingTrial(t)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.breakNode()
	s := x.newRespondingScope(&plan.Facts{})
	acquire := func() *result.Result {
		s.Instance.Status.DisruptionPending = true
		return x.newDependencies().disruptor.AcquireSlot(t.Context(), s, x.getNode(), v1alpha1.CauseRepair)
	}
	if o := acquire(); o != nil || len(gate.requests) > 0 || s.Instance.Status.DisruptionPending {
		t.Errorf("%v, asked %v, still waits: %t", o, gate.requests, s.Instance.Status.DisruptionPending)
	}
	gate.held = nil
	if o := acquire(); o != nil || len(gate.requests) != 1 || s.Instance.Status.DisruptionPending {
		t.Errorf("without its turn: %v, asked %v, still waits: %t", o, gate.requests, s.Instance.Status.DisruptionPending)
	}
}

func TestReboot_NotDoneRequestsSlotAgain(t *testing.T) {
	x := newTrial(t)
	gate := openGate()
	x.Gate = gate
	x.asNode(machineInstance(), x.key.Hash())
	x.changeNode(func(n *corev1.Node) { requestReboot(n); setCordoned(n) })
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
		s.RequestedReboot = &v1alpha1.RequestedReboot{BootID: "boot-1", StartedAt: metav1.NewTime(noon)}
	})
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	facts := &plan.Facts{}
	facts.System.BootID = "boot-1"
	s := x.newRespondingScope(facts)
	o := x.newDependencies().reboot.reconcile(t.Context(), s)
	if o == nil || o.Reason != v1alpha1.ReasonMaxUnavailableReached || s.Instance.Status.RequestedReboot != nil {
		t.Fatalf("%+v, requested %v", o, s.Instance.Status.RequestedReboot)
	}
	x.checkInService(gate)
}

// The Node changes when it becomes Ready again, so the write that removes the annotation conflicts with a newer
// version.
func TestReboot_RecordKeptUntilAnnotationIsRemoved(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	x.changeNode(func(n *corev1.Node) { requestReboot(n); setCordoned(n) })
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
		s.RequestedReboot = &v1alpha1.RequestedReboot{BootID: "boot-1", StartedAt: metav1.NewTime(noon)}
	})
	s := x.newRespondingScope(&plan.Facts{})
	stale := x.getNode()
	x.changeNode(func(n *corev1.Node) { n.Labels = map[string]string{"changed": "meanwhile"} })
	if err := x.newDependencies().nodes.Activate(t.Context(), s.Instance, stale, s.Key.Hash()); err == nil {
		t.Fatal("the write met nothing newer")
	}
	if s.Instance.Status.RequestedReboot == nil {
		t.Error("the restart is forgotten, and still wanted: the host would be restarted again")
	}
	if err := x.newDependencies().nodes.Activate(t.Context(), s.Instance, x.getNode(), s.Key.Hash()); err != nil ||
		s.Instance.Status.RequestedReboot != nil || nodes.IsRebootRequested(x.getNode()) {
		t.Errorf("%v, requested %v, annotations %v", err, s.Instance.Status.RequestedReboot, x.getNode().Annotations)
	}
}

func TestRemoval_FailedDrainRetriedWithFullTimeout(t *testing.T) {
	failed := func(t *testing.T) *trial {
		x := newTrial(t)
		instance := machineInstance()
		instance.Spec.Source = v1alpha1.Source{ConfigMapKey: "10.0.128.7"}
		x.asNode(instance, x.key.Hash())
		x.failedWith(x.getInstance(), v1alpha1.ReasonDrainTimedOut, 30*time.Minute)
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.FailedChange.Cause = v1alpha1.CauseRemoval })
		x.host.switchOff(true)
		return x
	}
	t.Run("is tried again at once when an administrator wants it", func(t *testing.T) {
		x := failed(t)
		x.changeSpec(x.getInstance(), setRemoved)
		x.reconcile()
		if x.countDials() > 0 {
			t.Fatal("it was not to be tried yet")
		}
		x.annotateInstance(v1alpha1.AnnotationRetry, "now")
		if instance, _ := x.reconcile(); x.countDials() == 0 || instance.Annotations[v1alpha1.AnnotationRetry] != "" ||
			instance.Status.FailedChange != nil {
			t.Errorf("%d connections, %v", x.countDials(), instance.Annotations)
		}
	})
	t.Run("does not keep the host from being a node again, and changed", func(t *testing.T) {
		x := failed(t)
		x.facts.Kubelet.ClusterDomain = "other.local"
		s := x.newRespondingScope(nil)
		spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
		if err != nil {
			t.Fatal(err)
		}
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.FailedChange.SpecDigest = spec.Digest() })
		if x.reconcile(); x.countDials() == 0 {
			t.Error("it waits")
		}
	})
	t.Run("has as much time as the one before", func(t *testing.T) {
		x := failed(t)
		x.changeNode(setCordoned)
		x.clock.Step(time.Hour)
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
			s.FailedChange.Time = metav1.NewTime(noon.Add(15 * time.Minute))
		})
		s := x.newRespondingScope(nil)
		for range 2 {
			since, err := x.newDependencies().disruptor.Cordon(t.Context(), s, x.getNode())
			if err != nil || !since.Equal(x.clock.Now()) {
				t.Errorf("the drain began at %s, want %s: %v", since, x.clock.Now(), err)
			}
		}
	})
}

func TestRollback_FailureWithoutTargetReported(t *testing.T) {
	begun := func(t *testing.T) (*trial, *result.Result) {
		x, _ := newDrainingTrial(t)
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
		return x, &result.Result{Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChecksFailed,
			Outcome: result.ChangeFailed, Message: "kubelet: ends at once"}
	}
	t.Run("once, after some attempts, so that others do not follow it", func(t *testing.T) {
		x, o := begun(t)
		s, d := x.newRespondingScope(&plan.Facts{}), x.newDependencies()
		for range 3 * maxChangeAttempts {
			if got := d.rollback.RecordFailure(t.Context(), s, o); got != o {
				t.Fatalf("it says %+v", got)
			}
		}
		d.events.Flush()
		failed := s.Instance.Status.FailedChange
		if failed == nil || failed.Attempts != 1 || failed.RolledBack || failed.Cause != v1alpha1.CauseUpgrade ||
			failed.Version != x.Version {
			t.Errorf("it notes %+v", failed)
		}
		if events := x.popEvents(); len(events) != 1 {
			t.Errorf("told %q", events)
		}
	})
	t.Run("and is not begun anew at once when it has lost its place", func(t *testing.T) {
		x, o := begun(t)
		s := x.newRespondingScope(&plan.Facts{})
		for range maxChangeAttempts {
			x.newDependencies().rollback.RecordFailure(t.Context(), s, o)
		}
		gate := openGate()
		x.Gate = gate
		got := x.newDependencies().disruptor.AcquireSlot(t.Context(), s, x.getNode(), v1alpha1.CauseUpgrade)
		if got == nil || got.Reason != v1alpha1.ReasonChangeFailed || len(gate.requests) > 0 {
			t.Errorf("%+v, asked %v", got, gate.requests)
		}
		x.clock.Step(31 * time.Minute)
		if got := x.newDependencies().disruptor.AcquireSlot(t.Context(), s, x.getNode(), v1alpha1.CauseUpgrade); got != nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("but a removal that fails is none", func(t *testing.T) {
		x, _ := begun(t)
		x.changeSpec(x.getInstance(), setRemoved)
		s := x.newRespondingScope(&plan.Facts{})
		s.Session.RollbackTarget = "abc"
		o := hostjobs.ResultFromError(v1alpha1.ConditionInstalled, &agentapi.Failure{Reason: agentapi.ReasonStepFailed})
		for range maxChangeAttempts {
			if got := x.newDependencies().rollback.RecordFailure(t.Context(), s, o); got != o || s.Instance.Status.FailedChange != nil {
				t.Fatalf("%+v", got)
			}
		}
	})
}

func TestRetry_AnnotationWithoutFailureIsRemoved(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	x.annotateInstance(v1alpha1.AnnotationRetry, "now")
	instance, _ := x.reconcile()
	if _, exists := instance.Annotations[v1alpha1.AnnotationRetry]; exists {
		t.Error("it stays, and the next failure is not waited for")
	}
}

func TestDrain_LaterPodsStopNoStartedChange(t *testing.T) {
	x, _ := newDrainingTrial(t)
	x.changeNode(setDrained)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.clock.Step(time.Hour)
	s := x.newRespondingScope(&plan.Facts{})
	if o := x.newDependencies().disruptor.Drain(t.Context(), s, x.getNode(), v1alpha1.CauseUpgrade); o != nil {
		t.Errorf("%+v", o)
	}
	if actions := x.clientset.Actions(); len(actions) > 0 {
		t.Errorf("it looks for pods: %v", actions)
	}
}

// A node that a user has cordoned is drained without a record of the start on the Node.
func TestDrain_UserCordonRestartsNoOtherWait(t *testing.T) {
	x, _ := newDrainingTrial(t)
	x.changeNode(func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationCordoned) })
	s := x.newRespondingScope(&plan.Facts{})
	for range 2 {
		start := s.Session.WaitingSince("the Node to report Ready", x.clock.Now())
		since, err := x.newDependencies().disruptor.Cordon(t.Context(), s, x.getNode())
		if err != nil || !start.Equal(noon) || !since.Equal(noon) {
			t.Errorf("the wait began at %s, the drain at %s: %v", start, since, err)
		}
		x.clock.Step(time.Minute)
	}
	s.RequestSlotRelease()
	if since, _ := x.newDependencies().disruptor.Cordon(t.Context(), s, x.getNode()); !since.Equal(x.clock.Now()) {
		t.Errorf("the next drain began at %s", since)
	}
}
