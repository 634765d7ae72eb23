package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// setDrained sets the state of a node with a complete drain that began at noon.
func setDrained(node *corev1.Node) {
	setCordoned(node)
	node.Annotations[v1alpha1.AnnotationDrained] = node.Annotations[v1alpha1.AnnotationCordoned]
}

// setDraining sets the state of a node with an incomplete drain that began at noon.
func setDraining(node *corev1.Node) {
	setCordoned(node)
	node.Annotations[v1alpha1.AnnotationDrained] = v1alpha1.DrainIncomplete
}

func uncordonByHand(node *corev1.Node) { node.Spec.Unschedulable = false }

// addBlockedPod adds a pod that must not be evicted to the node of the trial, and returns a function that deletes the
// pod.
func (x *trial) addBlockedPod(pod string) (deletePod func()) {
	x.t.Helper()
	x.addPod(pod)
	x.onEviction(func(string) error {
		// Not 429, which the drain library retries until its timeout.
		return apierrors.NewForbidden(corev1.Resource("pods"), pod, errors.New("its budget allows no disruption"))
	})
	return func() {
		if err := x.clientset.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", pod); err != nil {
			x.t.Fatal(err)
		}
	}
}

// addPod adds a pod to the node of the trial.
func (x *trial) addPod(name string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: machine}}
	if err := x.clientset.Tracker().Add(pod); err != nil {
		x.t.Error(err)
	}
}

// onEviction handles requests to evict pods.
func (x *trial) onEviction(answer func(pod string) error) {
	x.clientset.Resources = []*metav1.APIResourceList{
		{GroupVersion: policyv1.SchemeGroupVersion.String()},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"}}},
	}
	x.clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		return true, nil, answer(action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name)
	})
}

// allowEvictions deletes evicted pods, after a call of before; nil for none. The returned names are in eviction order.
func (x *trial) allowEvictions(before func(pod string)) *[]string {
	var evicted []string
	x.onEviction(func(pod string) error {
		if before != nil {
			before(pod)
		}
		evicted = append(evicted, pod)
		return x.clientset.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "shop", pod)
	})
	return &evicted
}

// A change without disruptive steps is applied without a drain. If a disruptive step follows before the
// verification, the node must be drained for that step, regardless of the number of reconciles.
func TestDrain_NotSkippedForLaterDisruptiveStep(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	x.changeNode(func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule})
	})
	x.facts.TrustedCAs = []string{selfSigned(t, "Example CA")}
	instance := x.reconcileUntil("the harmless change", hasSummary(v1alpha1.ReasonNodeNotInitialized))
	if instance.Status.SpecDigest != "" || x.getNode().Spec.Unschedulable || len(gate.requests) > 0 {
		t.Fatalf("digest %q, unschedulable %t, asked %v", instance.Status.SpecDigest, x.getNode().Spec.Unschedulable, gate.requests)
	}
	x.changeNode(requestReboot)
	deletePod := x.addBlockedPod("kept")
	for range 3 {
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDrainBlocked)
		if slices.Contains(h.agentCommands(), "reboot") || !nodes.IsDraining(x.getNode()) || len(gate.held) == 0 {
			t.Fatalf("verbs %v, annotations %v, held %v", h.agentCommands(), x.getNode().Annotations, gate.held)
		}
	}
	deletePod()
	x.reconcileUntil("the restart", func(*v1alpha1.WindowsInstance) bool { return slices.Contains(h.agentCommands(), "reboot") })
	if !nodeidentity.IsDrained(x.getNode()) {
		t.Errorf("the host is restarted, and its Node has %v", x.getNode().Annotations)
	}
	x.changeNode(func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUninitialized })
	})
	x.reconcileUntil("the node", hasSummary(v1alpha1.ReasonReady))
	x.checkInService(gate)
}

// The agent has planned a change without disruption of pods. Before the apply, a file of kube-proxy changes on
// the host, so kube-proxy must be restarted.
func TestDrain_RunsIfHostChangesAfterPlan(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	x.addPod("web")
	evicted := x.allowEvictions(nil)
	services := x.desiredSpec().Services
	proxy := services[slices.IndexFunc(services, func(s nodespec.Service) bool { return s.Name == nodespec.ServiceKubeProxy })]
	var once sync.Once
	t.Cleanup(h.machine.OnOperation(func(o fake.Operation) error {
		if o.Process == nil || len(o.Process.Args) == 0 || o.Process.Args[0] != "apply" {
			return nil
		}
		once.Do(func() {
			if err := h.machine.Drive().WriteFile(proxy.RestartOn[0], []byte("changed by hand")); err != nil {
				t.Error(err)
			}
		})
		if o.Method == "Stop" && len(*evicted) == 0 {
			t.Errorf("%s, and the pod is still there", o)
		}
		return nil
	}))
	x.facts.TrustedCAs = []string{selfSigned(t, "Example CA")}
	x.reconcileUntil("the change", func(i *v1alpha1.WindowsInstance) bool {
		return i.Status.SpecDigest == x.specDigest() && len(gate.held) == 0 && !x.getNode().Spec.Unschedulable
	})
	if !slices.Equal(*evicted, []string{"web"}) {
		t.Errorf("evicted: %q", *evicted)
	}
	x.checkInService(gate)
}

func TestDrain_RepeatedUntilRecordedAsComplete(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(*corev1.Node)
		repeats bool
	}{
		"the node is cordoned for the first time":                   {func(*corev1.Node) {}, true},
		"the drain is not complete":                                 {setDraining, true},
		"the drain is complete":                                     {setDrained, false},
		"an earlier version has cordoned the node without a record": {setCordoned, true},
		"the record is of another cordon": {func(n *corev1.Node) {
			setDrained(n)
			n.Annotations[v1alpha1.AnnotationDrained] = "2026-11-20T08:00:00Z"
		}, true},
		"a user has made the node schedulable since":                  {func(n *corev1.Node) { setDrained(n); uncordonByHand(n) }, true},
		"a user has taken the cordon over by deleting its annotation": {func(n *corev1.Node) { setDrained(n); delete(n.Annotations, v1alpha1.AnnotationCordoned) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := newDrainingTrial(t)
			x.changeNode(func(n *corev1.Node) {
				uncordonByHand(n)
				delete(n.Annotations, v1alpha1.AnnotationCordoned)
				c.before(n)
			})
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
			x.addBlockedPod("kept")
			s := x.newRespondingScope(&plan.Facts{RollbackTarget: "abc"})
			for pass := range 2 {
				o := x.runPhase(s, x.drainNode)
				if blocked := o != nil && o.Reason == v1alpha1.ReasonDrainBlocked; blocked != c.repeats || o != nil && !o.HoldsSlot {
					t.Errorf("pass %d: %+v", pass, o)
				}
				if nodeidentity.IsDrained(x.getNode()) == c.repeats {
					t.Errorf("pass %d: the Node has %v", pass, x.getNode().Annotations)
				}
			}
		})
	}
}

// Another client uncordons the node during a drain. Pods that arrive then must leave before the drain counts as
// complete, even if the node has been cordoned again.
func TestDrain_EvictsPodsCreatedDuringDrain(t *testing.T) {
	for name, after := range map[string]func(*corev1.Node){
		"the node is schedulable":         func(*corev1.Node) {},
		"the node is unschedulable again": func(node *corev1.Node) { node.Spec.Unschedulable = true },
	} {
		t.Run(name, func(t *testing.T) {
			x, h, _ := nodeInService(t, "None")
			x.changeNode(requestReboot)
			x.addPod("slow")
			evicted := x.allowEvictions(func(name string) {
				if name == "slow" {
					x.changeNode(uncordonByHand)
					x.addPod("late")
					x.changeNode(after)
				}
			})
			x.reconcileUntil("the restart", func(*v1alpha1.WindowsInstance) bool { return slices.Contains(h.agentCommands(), "reboot") })
			if !slices.Equal(*evicted, []string{"slow", "late"}) {
				t.Errorf("evicted: %q", *evicted)
			}
		})
	}
}

// The list of pods was empty, and another client uncordons the node before that is recorded.
func TestDrain_EvictsPodsCreatedAfterLastList(t *testing.T) {
	x, h, _ := nodeInService(t, "None")
	x.changeNode(requestReboot)
	evicted := x.allowEvictions(nil)
	var once sync.Once
	x.clientset.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		empty := false
		once.Do(func() {
			empty = true
			x.changeNode(uncordonByHand)
			x.addPod("late")
		})
		return empty, &corev1.PodList{}, nil
	})
	x.reconcileUntil("the restart", func(*v1alpha1.WindowsInstance) bool { return slices.Contains(h.agentCommands(), "reboot") })
	if !slices.Equal(*evicted, []string{"late"}) {
		t.Errorf("evicted: %q", *evicted)
	}
}

// drainNode drains the node of the instance.
func (x *trial) drainNode(ctx context.Context, s *scope.Scope) *result.Result {
	return x.newDependencies().disruptor.Drain(ctx, s, x.getNode(), v1alpha1.CauseUpgrade)
}

// It is unknown when the drain by the earlier version ended, so this drain has the full timeout.
func TestDrain_HasFullTimeoutOnceWithoutRecord(t *testing.T) {
	x, _ := newDrainingTrial(t)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.addBlockedPod("kept")
	x.clock.Step(time.Hour)
	s := x.newRespondingScope(&plan.Facts{RollbackTarget: "abc"})
	drain := func() string {
		if o := x.runPhase(s, x.drainNode); o != nil {
			return o.Reason
		}
		return "drained"
	}
	if got := drain(); got != v1alpha1.ReasonDrainBlocked {
		t.Errorf("at first: %s", got)
	}
	x.clock.Step(s.Settings.DrainTimeout - time.Second)
	if got := drain(); got != v1alpha1.ReasonDrainBlocked {
		t.Errorf("shortly before its end: %s", got)
	}
	x.clock.Step(time.Second)
	if got := drain(); got != v1alpha1.ReasonDrainTimedOut {
		t.Errorf("at its end: %s", got)
	}
}

// The next reconcile may happen after the user has cordoned the node again.
func TestDrain_RecordDeletedAfterUncordon(t *testing.T) {
	x, _ := newDrainingTrial(t)
	x.changeNode(setDrained)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.host.switchOff(true)
	if !x.changeAsOtherWriter(uncordonByHand) {
		t.Error("no pass is asked for")
	}
	x.reconcile()
	x.changeNode(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if node := x.getNode(); nodeidentity.IsDrained(node) || nodes.IsDraining(node) || !nodes.IsCordoned(node) {
		t.Errorf("the Node has %v", node.Annotations)
	}
}

// A pause must not keep a node out of service if the change that the node is drained for has not begun.
func TestDrain_PauseReturnsNodeToService(t *testing.T) {
	x, gate := newDrainingTrial(t)
	x.changeNode(setDraining)
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
	x.reconcile()
	x.checkInService(gate)
}

// A drain lasts half a minute, and the Machine gets its label meanwhile.
func TestDrain_IgnoredMachineReturnsNodeToService(t *testing.T) {
	x, gate := newDrainingTrial(t)
	x.changeNode(setDraining)
	x.addBlockedPod("kept")
	s := x.newRespondingScope(&plan.Facts{})
	if o := x.drainNode(t.Context(), s); o == nil || o.Outcome != result.Working {
		t.Fatalf("%+v", o)
	}
	x.Jobs.Commit(t.Context(), s.Instance, s.Host)
	x.changeSpec(x.getInstance(), setUnmanaged(v1alpha1.ReasonMachineIgnored))
	if len(gate.held) == 0 || !x.getNode().Spec.Unschedulable {
		t.Fatalf("held %v, unschedulable %t: the drain was to be cut off", gate.held, x.getNode().Spec.Unschedulable)
	}
	x.reconcile()
	x.checkInService(gate)
	version := x.getNode().ResourceVersion
	if x.reconcile(); x.getNode().ResourceVersion != version {
		t.Error("the next reconcile writes the Node again")
	}
}

// The next instance has no status, so the owner of the cordon is read from the Node.
func TestDrain_IgnoredMachineReturnsNodeWithoutStatus(t *testing.T) {
	x, gate := newDrainingTrial(t)
	x.changeNode(func(n *corev1.Node) {
		setDraining(n)
		n.Annotations[v1alpha1.AnnotationInstance] = x.getInstance().Name
	})
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { *s = v1alpha1.WindowsInstanceStatus{} })
	x.changeSpec(x.getInstance(), setUnmanaged(v1alpha1.ReasonMachineIgnored))
	x.reconcile()
	x.checkInService(gate)
}

func TestDrain_IgnoredMachineStaysCordonedAfterChange(t *testing.T) {
	ignored := func(t *testing.T, change func(*corev1.Node)) (*trial, *v1alpha1.WindowsInstance) {
		x, _ := newDrainingTrial(t)
		x.changeNode(change)
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
		x.changeSpec(x.getInstance(), setUnmanaged(v1alpha1.ReasonMachineIgnored))
		instance, _ := x.reconcile()
		return x, instance
	}
	t.Run("stays unschedulable after its host was begun with, and the status says so", func(t *testing.T) {
		x, instance := ignored(t, setDrained)
		ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMachineIgnored)
		if !x.getNode().Spec.Unschedulable || !strings.Contains(ready.Message, "remains unschedulable") {
			t.Errorf("unschedulable %t: %s", x.getNode().Spec.Unschedulable, ready.Message)
		}
	})
	t.Run("is in service when its pods have not left", func(t *testing.T) {
		x, instance := ignored(t, setDraining)
		ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMachineIgnored)
		if x.getNode().Spec.Unschedulable || strings.Contains(ready.Message, "remains unschedulable") {
			t.Errorf("unschedulable %t: %s", x.getNode().Spec.Unschedulable, ready.Message)
		}
	})
	t.Run("is tried again when it cannot be read", func(t *testing.T) {
		x, gate := newDrainingTrial(t)
		x.changeSpec(x.getInstance(), setUnmanaged(v1alpha1.ReasonMachineIgnored))
		live := x.Live
		x.Live = interceptor.NewClient(x.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, node := object.(*corev1.Node); node {
					return errors.New("no answer")
				}
				return c.Get(ctx, key, object, options...)
			},
		})
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
		if after == 0 {
			t.Error("no other pass follows")
		}
		x.Live = live
		x.reconcile()
		x.checkInService(gate)
	})
}
