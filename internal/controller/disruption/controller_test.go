package disruption_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

func (w *world) policyCondition(name string) metav1.Condition {
	w.t.Helper()
	found := meta.FindStatusCondition(w.getPolicy().Status.Conditions, name)
	if found == nil {
		w.t.Fatalf("the policy has no condition %s", name)
	}
	return *found
}

func TestPolicy_CreatedAndStatusRestored(t *testing.T) {
	shared := newWorld(t)
	t.Run("one is made where an administrator has made none, and made again when it is deleted", func(t *testing.T) {
		w := shared.forSubtest(t)
		w.createHost("byoh-1", version)
		w.start("one", true)
		for range 2 {
			var created *v1alpha1.WindowsDisruptionPolicy
			w.waitUntil("a policy with a status", func(ctx context.Context) (bool, error) {
				created = &v1alpha1.WindowsDisruptionPolicy{}
				err := w.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.DisruptionPolicyName}, created)
				return created.Status.ObservedGeneration > 0, client.IgnoreNotFound(err)
			})
			if s := created.Spec; s.MaxUnavailable.IntValue() != 1 || s.FailureDeadline.Duration != disruptionpolicy.DefaultFailureDeadline || s.UpgradeStrategy != v1alpha1.UpgradeReplace {
				t.Errorf("its spec is %+v", s)
			}
			if s := created.Status; s.Nodes != 1 || s.Updated != 1 || s.Summary == "" {
				t.Errorf("its status is %+v", s)
			}
			w.requireNoError(w.admin.Delete(t.Context(), created))
		}
	})
	t.Run("a cluster without any host has one, too", func(t *testing.T) {
		w := shared.forSubtest(t)
		w.start("one", true)
		w.waitUntil("a policy", func(ctx context.Context) (bool, error) {
			created := &v1alpha1.WindowsDisruptionPolicy{}
			err := w.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.DisruptionPolicyName}, created)
			return created.Status.ObservedGeneration > 0, client.IgnoreNotFound(err)
		})
	})
	t.Run("one that is being deleted is not made again before it is gone, and is kept until then", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.reconcile()
		held := w.getPolicy()
		held.Finalizers = []string{"example.com/held"}
		w.requireNoError(w.admin.Update(t.Context(), held))
		w.requireNoError(w.admin.Delete(t.Context(), held))
		p.acquireSlot(host, v1alpha1.CauseConfiguration)
		p.reconcile()
		present := w.getPolicy()
		if present.UID != held.UID || len(present.Status.Disruptions) != 1 {
			t.Errorf("it is %+v", present)
		}
		present.Finalizers = nil
		w.requireNoError(w.admin.Update(t.Context(), present))
		p.reconcile()
		if again := w.getPolicy(); again.UID == held.UID || len(again.Status.Disruptions) != 1 {
			t.Errorf("it is %+v", again)
		}
	})
	t.Run("what goes on is found again by an operator that remembers nothing", func(t *testing.T) {
		w := shared.forSubtest(t)
		drained, changed := w.createHost("byoh-1", before), w.createHost("byoh-2", version)
		w.createHost("byoh-3", before)
		w.patchNode(drained.Name, func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordoned] = true, "true"
		})
		set := w.createMachineSet("workers", 2)
		deleted := w.createMachine(set, "machine-1", before)
		w.createMachine(set, "machine-2", before)
		w.deleteMachine(deleted)
		p := w.start("one", false)
		if decision := p.acquireSlot(changed, v1alpha1.CauseConfiguration); decision.Allowed {
			t.Error("the budget is passed before the list is made again")
		}
		p.reconcile()
		listed := w.getPolicy().Status.Disruptions
		if len(listed) != 2 {
			t.Fatalf("%+v", listed)
		}
		slices.SortFunc(listed, func(a, b v1alpha1.Disruption) int { return strings.Compare(a.Instance, b.Instance) })
		for i, want := range []v1alpha1.Disruption{
			{Instance: drained.Name, InstanceUID: drained.UID, Node: drained.Name, Pool: disruptionpolicy.HostsPool, Cause: v1alpha1.CauseUpgrade, Version: version},
			{Instance: deleted.Name, InstanceUID: deleted.UID, Node: deleted.Name, Pool: "MachineSet/workers", Cause: v1alpha1.CauseUpgrade, Version: version, Machine: deleted.Name},
		} {
			want.HolderIdentity, want.Since = "one", listed[i].Since
			if listed[i] != want {
				t.Errorf("%+v, want %+v", listed[i], want)
			}
		}
		p.releaseSlot(drained)
		if got := w.disruptedInstances(); !slices.Equal(got, []string{deleted.Name}) {
			t.Errorf("%q are listed", got)
		}
	})
	t.Run("an operator that starts has what an earlier one had, and that of instances that are gone ends", func(t *testing.T) {
		w := shared.forSubtest(t)
		w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.MaxUnavailable.IntVal = 2 })
		host, deleted := w.createHost("byoh-1", before), w.createHost("byoh-2", before)
		first := w.start("first", false)
		for _, instance := range []*v1alpha1.WindowsInstance{host, deleted} {
			if decision := first.acquireSlot(instance, v1alpha1.CauseConfiguration); !decision.Allowed {
				t.Fatalf("%+v", decision)
			}
		}
		w.requireNoError(w.admin.Delete(t.Context(), deleted))
		second := w.start("second", false)
		second.reconcile()
		if left := w.getPolicy().Status.Disruptions; len(left) != 1 || left[0].Instance != host.Name || left[0].HolderIdentity != "second" {
			t.Errorf("%+v", left)
		}
		if found := second.eventsWithReason("DisruptionFailed"); len(found) != 0 {
			t.Errorf("events %q", found)
		}
		first.reconcile()
		second.releaseSlot(host)
		first.releaseSlot(host)
	})
	t.Run("one that cannot be followed lets repairs and removals through and nothing else, and says what is wrong", func(t *testing.T) {
		w := shared.forSubtest(t)
		w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) {
			s.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{Schedule: "every other day", Duration: metav1.Duration{Duration: time.Hour}}}
		})
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.reconcile()
		if valid := w.policyCondition(v1alpha1.ConditionValid); valid.Status != metav1.ConditionFalse || valid.Reason != v1alpha1.ReasonDisruptionPolicyInvalid || !strings.Contains(valid.Message, "every other day") {
			t.Errorf("%+v", valid)
		}
		if stopped := w.policyCondition(v1alpha1.ConditionStopped); stopped.Status != metav1.ConditionTrue || metricValue(t, "wmco_disruptions_stopped") != 1 {
			t.Errorf("%+v", stopped)
		}
		for _, cause := range []v1alpha1.DisruptionCause{v1alpha1.CauseUpgrade, v1alpha1.CauseConfiguration, v1alpha1.CauseReboot, v1alpha1.CauseKeyChange} {
			if decision := p.acquireSlot(host, cause); decision.Allowed || decision.Reason != v1alpha1.ReasonDisruptionPolicyInvalid {
				t.Errorf("%s: %+v", cause, decision)
			}
		}
		for _, cause := range []v1alpha1.DisruptionCause{v1alpha1.CauseRepair, v1alpha1.CauseRemoval} {
			if decision := p.acquireSlot(host, cause); !decision.Allowed {
				t.Errorf("%s: %+v", cause, decision)
			}
			p.releaseSlot(host)
		}
		if settings, err := p.Settings(t.Context()); err != nil || settings.DrainTimeout != disruptionpolicy.DefaultDrainTimeout {
			t.Errorf("%+v, %v", settings, err)
		}
		p.reconcile()
		if found := p.eventsWithReason(v1alpha1.ReasonDisruptionPolicyInvalid); len(found) != 1 {
			t.Errorf("events %q", found)
		}
		w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.MaintenanceWindows = nil })
		p.reconcile()
		if valid := w.policyCondition(v1alpha1.ConditionValid); valid.Status != metav1.ConditionTrue || metricValue(t, "wmco_disruptions_stopped") != 0 {
			t.Errorf("%+v", valid)
		}
		if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("in a namespace that goes nothing is made, and nothing fails", func(t *testing.T) {
		w := shared.forSubtest(t)
		p := w.start("one", false)
		p.refuse = apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("windowsdisruptionpolicies").GroupResource(), "cluster", nil)
		p.refuse.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		p.reconcile()
	})
}

func TestReconcile_FailedDisruptionReleasesSlot(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	host, other := w.createHost("byoh-1", before), w.createHost("byoh-2", version)
	p := w.start("one", false)
	counted, failed := metricValue(t, "wmco_disruptions_total"), metricValue(t, "wmco_disruptions_failed_total")
	p.acquireSlot(host, v1alpha1.CauseUpgrade)
	w.reportNode(host.Name, false, "v1.35.1")
	if result := p.reconcile(); result.RequeueAfter <= 0 || result.RequeueAfter > disruptionpolicy.DefaultFailureDeadline {
		t.Errorf("%+v", result)
	}
	if got := metricValue(t, "wmco_nodes_disrupted"); got != 1 {
		t.Errorf("%v nodes are disturbed", got)
	}
	if got := metricValue(t, "wmco_nodes_outdated"); got != 1 {
		t.Errorf("%v nodes are outdated", got)
	}
	w.clock.SetTime(w.clock.Now().Add(disruptionpolicy.DefaultFailureDeadline))
	for range 3 {
		p.reconcile()
	}
	if found := p.eventsWithReason("DisruptionFailed"); len(found) != 2 { // on the policy and on the instance
		t.Errorf("events %q", found)
	}
	if got := metricValue(t, "wmco_disruptions_total") - counted; got != 1 {
		t.Errorf("%v were counted", got)
	}
	if got := metricValue(t, "wmco_disruptions_failed_total") - failed; got != 1 {
		t.Errorf("%v failures were counted", got)
	}
	if got := metricValue(t, "wmco_nodes_disrupted"); got != 0 {
		t.Errorf("%v nodes are disturbed", got)
	}
	if status := w.getPolicy().Status; status.Failed != 1 {
		t.Errorf("%+v", status)
	}
	if decision := p.acquireSlot(other, v1alpha1.CauseConfiguration); !decision.Allowed {
		t.Errorf("a failed node holds up another one: %+v", decision)
	}
}

func TestReconcile_NoWritesIfIdle(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	set := w.createMachineSet("workers", 1)
	w.createHost("byoh-1", version)
	w.createHost("byoh-2", before)
	w.createMachine(set, "machine-1", version)
	p := w.start("one", false)
	p.reconcile()
	written, writes := w.getPolicy(), p.writes.Load()
	for range 5 {
		if result := p.reconcile(); result.RequeueAfter < time.Minute {
			t.Errorf("%+v", result)
		}
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
	}
	if p.writes.Load() != writes || w.getPolicy().ResourceVersion != written.ResourceVersion {
		t.Errorf("%d writes; it was %+v, and is %+v", p.writes.Load()-writes, written.Status, w.getPolicy().Status)
	}
}

func TestReconcile_UpgradeableFollowsDisruptionsAndKubelets(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	object := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: condition}}
	w.requireNoError(w.admin.Create(t.Context(), object))
	host := w.createHost("byoh-1", version)
	p := w.start("one", false)
	p.reconciler.Conditions = operatorcondition.NewWriter(p.mgr.GetClient(), p.mgr.GetAPIReader(), namespace, condition)
	expect := func(when string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		p.reconcile()
		w.requireNoError(w.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		got := meta.FindStatusCondition(object.Spec.Conditions, operatorsv2.Upgradeable)
		if got == nil || got.Status != status || got.Reason != reason || got.Message == "" {
			t.Errorf("%s it is %+v", when, got)
		}
	}
	expect("at rest", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	p.acquireSlot(host, v1alpha1.CauseConfiguration)
	expect("while a node is disturbed", metav1.ConditionFalse, v1alpha1.ReasonDisruptionInProgress)
	w.reportNode(host.Name, false, "v1.35.1")
	w.clock.SetTime(w.clock.Now().Add(disruptionpolicy.DefaultFailureDeadline))
	expect("when that has failed", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	w.reportNode(host.Name, true, "v1.30.0")
	expect("with an old kubelet, which the next release may upgrade", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	writes := p.writes.Load()
	p.reconcile()
	if p.writes.Load() != writes {
		t.Errorf("%d writes when nothing differs", p.writes.Load()-writes)
	}
}
