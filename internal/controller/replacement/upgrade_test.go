package replacement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

const versionBefore = "11.0.0-abc1234"

// createOutdatedMachine creates a Machine like machine, with a host that has the current key and was configured by
// the previous version. The Machine awaits a replacement.
func (w *world) createOutdatedMachine(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	w.t.Helper()
	machine := w.createMachine(set, w.currentKey)
	w.changeNode(machine.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationVersion] = versionBefore })
	w.changeInstance(machine.Name, func(i *v1alpha1.WindowsInstance) {
		i.Spec.UpgradeStrategy, i.Status.ReplacementVersion = v1alpha1.UpgradeReplace, version
	})
	return machine
}

func (w *world) changeNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	node := &corev1.Node{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		w.t.Fatal(err)
	}
	change(node)
	status := node.Status
	w.updateObject(node)
	node.Status = status
	if err := w.client.Status().Update(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) changeInstance(name string, change func(*v1alpha1.WindowsInstance)) {
	w.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, instance); err != nil {
		w.t.Fatal(err)
	}
	change(instance)
	status := instance.Status
	w.updateObject(instance)
	instance.Status = status
	if err := w.client.Status().Update(w.t.Context(), instance); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) failMachine(machine *machinev1beta1.Machine) {
	w.t.Helper()
	machine.Status.Phase = ptr.To(machinev1beta1.PhaseFailed)
	w.updateObject(machine)
}

// deletingNames returns the Machines with a requested deletion.
func (w *world) deletingNames() (names []string) {
	for _, machine := range w.listDeleting() {
		names = append(names, machine.Name)
	}
	return names
}

func TestReconcile_ReplacesOutdatedMachines(t *testing.T) {
	deleted := func(t *testing.T, w *world, want ...string) {
		t.Helper()
		if got := w.deletingNames(); !slices.Equal(got, want) {
			t.Errorf("deleted are %v, want %v", got, want)
		}
	}
	t.Run("the one of a set with a single replica is replaced, and the reason is reported", func(t *testing.T) {
		w := newWorld(t)
		start := metricValue(t, "wmco_machines_replaced_total")
		w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		result, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineReplaced", "MachineReplaced")
		for _, event := range recorded {
			if !strings.Contains(event, versionBefore) || !strings.Contains(event, version) {
				t.Errorf("told is %q", event)
			}
		}
		deleted(t, w, "win-1")
		want := disruptionpolicy.Request{Instance: "win-1", UID: "instance-win-1", Cause: v1alpha1.CauseUpgrade, Version: version, Replaces: true}
		if !slices.Equal(w.gate.requests, []disruptionpolicy.Request{want}) || len(w.gate.released) > 0 {
			t.Errorf("the gate was asked for %+v", w.gate.requests)
		}
		if result.RequeueAfter != pollInterval || metricValue(t, "wmco_machines_replaced_total") != start+1 {
			t.Errorf("result %+v", result)
		}
	})
	for name, change := range map[string]func(w *world, machine *machinev1beta1.Machine){
		"a lone one": func(w *world, machine *machinev1beta1.Machine) {
			machine.OwnerReferences = nil
			w.updateObject(machine)
		},
		"one that is upgraded in place": func(w *world, machine *machinev1beta1.Machine) {
			w.changeInstance(machine.Name, func(i *v1alpha1.WindowsInstance) { i.Spec.UpgradeStrategy = v1alpha1.UpgradeInPlace })
		},
		"one whose host is what it should be, so that only the annotation moves": func(w *world, machine *machinev1beta1.Machine) {
			w.changeInstance(machine.Name, func(i *v1alpha1.WindowsInstance) { i.Status.ReplacementVersion = "" })
		},
		"one that the operator before this one has found to be other than it should be": func(w *world, machine *machinev1beta1.Machine) {
			w.changeInstance(machine.Name, func(i *v1alpha1.WindowsInstance) { i.Status.ReplacementVersion = "12.0.1" })
		},
		"one of this version, which the one before wanted to replace": func(w *world, machine *machinev1beta1.Machine) {
			w.changeNode(machine.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationVersion] = version })
		},
		"one that no version has configured": func(w *world, machine *machinev1beta1.Machine) {
			w.changeNode(machine.Name, func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationVersion) })
		},
		"one that is ignored": func(w *world, machine *machinev1beta1.Machine) {
			machine.Labels[v1alpha1.LabelIgnore] = "true"
			w.updateObject(machine)
		},
		"one whose set goes": func(w *world, machine *machinev1beta1.Machine) {
			set := &machinev1beta1.MachineSet{}
			if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: "one"}, set); err != nil {
				w.t.Fatal(err)
			}
			set.Finalizers = []string{"foregroundDeletion"}
			w.updateObject(set)
			w.deleteObject(set)
		},
	} {
		t.Run(name+" is never deleted", func(t *testing.T) {
			w := newWorld(t)
			change(w, w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName)))
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			for range 3 {
				_, recorded := w.reconcile()
				expectEvents(t, recorded)
			}
			deleted(t, w)
			if len(w.gate.requests) > 0 {
				t.Errorf("the gate was asked for %+v", w.gate.requests)
			}
		})
	}
	t.Run("one that has another key too is replaced once", func(t *testing.T) {
		w := newWorld(t)
		set := w.createMachineSet("one", 1, userdata.SecretName)
		machine := w.createOutdatedMachine(set)
		w.changeNode(machine.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationPubKeyHash] = w.previousKey.Hash() })
		w.changeInstance(machine.Name, func(i *v1alpha1.WindowsInstance) { i.Status.PublicKeyHash = w.previousKey.Hash() })
		w.reconcile()
		deleted(t, w, machine.Name)
		w.completeDeletion(&w.listDeleting()[0])
		w.createMachine(set, w.currentKey)
		_, recorded := w.reconcile()
		expectEvents(t, recorded)
		deleted(t, w)
		if len(w.gate.requests) != 1 {
			t.Errorf("the gate was asked for %+v", w.gate.requests)
		}
	})
	t.Run("a Machine that has failed keeps those of its set, and no others", func(t *testing.T) {
		w := newWorld(t)
		one, two := w.createMachineSet("one", 2, userdata.SecretName), w.createMachineSet("two", 1, userdata.SecretName)
		w.failMachine(w.createOutdatedMachine(one))
		w.createOutdatedMachine(one)
		w.createOutdatedMachine(two)
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineReplaced", "MachineReplaced", "ReplacementPending")
		deleted(t, w, "win-3")
	})
	t.Run("several go at once where several may", func(t *testing.T) {
		w := newWorld(t)
		w.gate.max = 2
		for _, name := range []string{"one", "two", "three"} {
			w.createOutdatedMachine(w.createMachineSet(name, 1, userdata.SecretName))
		}
		w.reconcile()
		deleted(t, w, "win-1", "win-2")
	})
	t.Run("one whose Node does not work goes first", func(t *testing.T) {
		w := newWorld(t)
		set := w.createMachineSet("one", 2, userdata.SecretName)
		w.createOutdatedMachine(set)
		w.changeNode(w.createOutdatedMachine(set).Name, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		w.reconcile()
		deleted(t, w, "win-2")
	})
	t.Run("a Machine with a slot is first: its operator has ended before the deletion", func(t *testing.T) {
		w := newWorld(t)
		set := w.createMachineSet("two", 2, userdata.SecretName)
		w.createOutdatedMachine(set)
		second := w.createOutdatedMachine(set)
		w.gate.disruptedSets[second.Name] = set.Name
		slots := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DisruptionPolicyName}}
		slots.Status.Disruptions = []v1alpha1.Disruption{{Instance: second.Name, InstanceUID: types.UID("instance-" + second.Name), Machine: second.Name}}
		if err := w.client.Create(t.Context(), slots); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		deleted(t, w, second.Name)
	})
	t.Run("one whose change in place was begun before it was to be replaced does not wait for that", func(t *testing.T) {
		w := newWorld(t)
		w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		w.gate.inPlace = []string{"win-1"}
		w.changeNode("win-1", func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationCordoned] = "true" })
		w.reconcile()
		deleted(t, w, "win-1")
	})
	t.Run("one that is given the key in place waits for that", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		w.gate.inPlace = []string{"win-1"}
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "ReplacementPending")
		deleted(t, w)
	})
}

func TestReconcile_WaitReportedOnceWithoutWarning(t *testing.T) {
	w := newWorld(t)
	w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
	w.createOutdatedMachine(w.createMachineSet("two", 1, userdata.SecretName))
	for _, test := range []struct {
		reason   string
		after    time.Duration
		again    time.Duration
		requests int
	}{
		{v1alpha1.ReasonMaxUnavailableReached, 0, pollInterval, 2},
		{v1alpha1.ReasonCanarySoaking, time.Second, pollInterval, 2},
		{v1alpha1.ReasonLastAvailableMachine, 0, pollInterval, 2},
		{v1alpha1.ReasonDisruptionsPaused, 0, waitingPollInterval, 2},
		{v1alpha1.ReasonOutsideMaintenanceWindow, time.Minute, time.Minute, 1},
		{v1alpha1.ReasonOutsideMaintenanceWindow, time.Hour, waitingPollInterval, 1},
		{v1alpha1.ReasonDisruptionPolicyInvalid, 0, waitingPollInterval, 1},
	} {
		w.gate.refused = &disruptionpolicy.Decision{Decision: policy.Decision{Reason: test.reason, Message: "Not now."},
			After: test.after}
		w.reported = recorder.Once[types.UID]{}
		_, first := w.reconcile()
		if len(first) != test.requests {
			t.Errorf("%s: told are %q", test.reason, first)
		}
		for _, event := range first {
			if !strings.HasPrefix(event, corev1.EventTypeNormal+" ReplacementPending ") || !strings.Contains(event, "Not now.") {
				t.Errorf("%s: told is %q", test.reason, event)
			}
		}
		w.gate.requests = nil
		result, second := w.reconcile()
		expectEvents(t, second)
		if result.RequeueAfter != test.again || len(w.gate.requests) != test.requests {
			t.Errorf("%s: it is asked for %d again after %s", test.reason, len(w.gate.requests), result.RequeueAfter)
		}
	}
	t.Run("also when its user has paused it", func(t *testing.T) {
		for _, name := range []string{"win-1", "win-2"} {
			w.changeInstance(name, func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
		}
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "ReplacementPending", "ReplacementPending")
		if !strings.HasPrefix(recorded[0], corev1.EventTypeNormal) {
			t.Errorf("told is %q", recorded[0])
		}
	})
}

// isDryRun reports whether a deletion is a dry run.
func isDryRun(options []client.DeleteOption) bool {
	return len((&client.DeleteOptions{}).ApplyOptions(options).DryRun) > 0
}

// An admission webhook may refuse the deletion for a long time.
func TestReconcile_RefusedDeletionAnnouncesOneDisruption(t *testing.T) {
	resource := schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}
	for name, refusal := range map[string]error{
		"as an admission webhook does":           apierrors.NewBadRequest("admission webhook \"machines.example.com\" denied the request"),
		"as an admission policy does":            apierrors.NewInvalid(schema.GroupKind{Kind: "Machine"}, "win-1", nil),
		"as it does without the right to delete": apierrors.NewForbidden(resource, "win-1", errors.New("no")),
	} {
		t.Run(name+", and is reported once", func(t *testing.T) {
			w := newWorld(t)
			w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
			w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal },
			})
			result, recorded := w.reconcile()
			expectEvents(t, recorded, "MachineNotReplaced")
			if !strings.Contains(recorded[0], refusal.Error()) || result.RequeueAfter != refusedInterval {
				t.Errorf("reported is %q; the next attempt is after %s", recorded[0], result.RequeueAfter)
			}
			for range 3 {
				_, recorded := w.reconcile()
				expectEvents(t, recorded)
			}
			if len(w.gate.requests) != 1 || len(w.gate.disruptedSets) > 0 {
				t.Errorf("the gate was asked %d times, and %v count as disturbed", len(w.gate.requests), w.gate.disruptedSets)
			}
			w.Client = w.client
			w.reconcile()
			if got := w.deletingNames(); !slices.Equal(got, []string{"win-1"}) || len(w.gate.requests) != 2 {
				t.Errorf("then deleted are %v, and the gate was asked %d times", got, len(w.gate.requests))
			}
		})
	}
	t.Run("and holds no Machine of another MachineSet up", func(t *testing.T) {
		w := newWorld(t)
		refused := w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		w.createOutdatedMachine(w.createMachineSet("two", 1, userdata.SecretName))
		w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if o.GetName() == refused.Name {
					return apierrors.NewForbidden(resource, refused.Name, errors.New("no"))
				}
				return c.Delete(ctx, o, options...)
			},
		})
		w.reconcile()
		if got := w.deletingNames(); !slices.Equal(got, []string{"win-2"}) {
			t.Errorf("deleted are %v", got)
		}
	})
	t.Run("and a webhook that supports no dry run does not keep a Machine", func(t *testing.T) {
		w, attempts := newWorld(t), 0
		w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if isDryRun(options) {
					return apierrors.NewBadRequest("admission webhook \"machines.example.com\" does not support dry run")
				}
				if attempts++; attempts == 1 {
					return apierrors.NewForbidden(resource, o.GetName(), errors.New("no"))
				}
				return c.Delete(ctx, o, options...)
			},
		})
		w.reconcile()
		w.reconcile()
		if got := w.deletingNames(); !slices.Equal(got, []string{"win-1"}) {
			t.Errorf("deleted are %v", got)
		}
	})
}

func TestReconcile_FailedDeletionIsRetried(t *testing.T) {
	resource := schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}
	for name, test := range map[string]struct {
		err               error
		reported, counted bool
	}{
		"it was deleted meanwhile": {err: apierrors.NewNotFound(resource, "win-1")},
		"it has changed":           {err: apierrors.NewConflict(resource, "win-1", nil)},
		"it is forbidden":          {err: apierrors.NewForbidden(resource, "win-1", nil)},
		"nobody knows whether it was": {err: apierrors.NewServerTimeout(resource, "delete", 1),
			reported: true, counted: true},
		"the API server went away meanwhile":   {err: errors.New("EOF"), reported: true, counted: true},
		"an admission webhook did not want it": {err: apierrors.NewBadRequest("no")},
		"the API server has failed in doing it": {err: apierrors.NewInternalError(errors.New("etcd")),
			reported: true, counted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
			w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return test.err },
			})
			_, err := w.Reconcile(t.Context(), ctrl.Request{})
			if (err != nil) != test.reported {
				t.Errorf("the error is %v", err)
			}
			if counted := len(w.gate.disruptedSets) > 0; counted != test.counted {
				t.Errorf("the node counts as disturbed: %t", counted)
			}
			w.Client = w.client
			w.reconcile()
			if got := w.deletingNames(); !slices.Equal(got, []string{"win-1"}) {
				t.Errorf("then deleted are %v", got)
			}
		})
	}
	t.Run("nothing is deleted while the gate cannot decide", func(t *testing.T) {
		w := newWorld(t)
		w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		w.gate.err = errors.New("connection refused")
		if _, err := w.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, w.gate.err) || len(w.deletingNames()) > 0 {
			t.Errorf("error %v, deleted are %v", err, w.deletingNames())
		}
	})
}
