package machine

import (
	"errors"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// machineSet returns a MachineSet with annotations: key, value, key, value.
func machineSet(name string, annotations ...string) *machinev1beta1.MachineSet {
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name, UID: types.UID("uid-of-set-" + name),
		Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		set.Annotations[annotations[i]] = annotations[i+1]
	}
	return set
}

func controlledBy(set *machinev1beta1.MachineSet) edit {
	return func(m *machinev1beta1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: set.UID,
			Controller: ptr.To(true)}}
	}
}

func disruptionPolicy(strategy v1alpha1.UpgradeStrategy) *v1alpha1.WindowsDisruptionPolicy {
	return &v1alpha1.WindowsDisruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DisruptionPolicyName},
		Spec:       v1alpha1.WindowsDisruptionPolicySpec{UpgradeStrategy: strategy},
	}
}

// upgradeStrategy returns the strategy in the instance of a Machine after a reconcile.
func (b *bench) upgradeStrategy(name string) v1alpha1.UpgradeStrategy {
	b.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, instance); err != nil {
		b.t.Fatal(err)
	}
	return instance.Spec.UpgradeStrategy
}

// R-146, D-1
func TestUpgradeStrategy(t *testing.T) {
	annotation := v1alpha1.AnnotationUpgradeStrategy
	plain, inPlace, replace := machineSet("a"), machineSet("a", annotation, "InPlace"), machineSet("a", annotation, "Replace")
	missing := machineSet("gone")
	for name, test := range map[string]struct {
		machine *machinev1beta1.Machine
		objects []client.Object
		want    v1alpha1.UpgradeStrategy
	}{
		"a Machine of a MachineSet is replaced":                     {newWindowsMachine("m", controlledBy(plain)), []client.Object{plain}, v1alpha1.UpgradeReplace},
		"also where the policy says nothing":                        {newWindowsMachine("m", controlledBy(plain)), []client.Object{plain, disruptionPolicy("")}, v1alpha1.UpgradeReplace},
		"it is upgraded in place where the policy says so":          {newWindowsMachine("m", controlledBy(plain)), []client.Object{plain, disruptionPolicy(v1alpha1.UpgradeInPlace)}, v1alpha1.UpgradeInPlace},
		"the MachineSet's annotation goes before the policy":        {newWindowsMachine("m", controlledBy(replace)), []client.Object{replace, disruptionPolicy(v1alpha1.UpgradeInPlace)}, v1alpha1.UpgradeReplace},
		"the MachineSet's annotation goes before the default":       {newWindowsMachine("m", controlledBy(inPlace)), []client.Object{inPlace}, v1alpha1.UpgradeInPlace},
		"a lone Machine is upgraded in place":                       {newWindowsMachine("m"), []client.Object{plain, disruptionPolicy(v1alpha1.UpgradeReplace)}, v1alpha1.UpgradeInPlace},
		"one whose MachineSet is gone as well":                      {newWindowsMachine("m", controlledBy(missing)), []client.Object{plain}, v1alpha1.UpgradeInPlace},
		"one whose MachineSet was made anew under its name as well": {newWindowsMachine("m", controlledBy(plain), func(m *machinev1beta1.Machine) { m.OwnerReferences[0].UID = "earlier" }), []client.Object{plain}, v1alpha1.UpgradeInPlace},
		"one that a MachineSet owns and does not control as well":   {newWindowsMachine("m", controlledBy(plain), func(m *machinev1beta1.Machine) { m.OwnerReferences[0].Controller = nil }), []client.Object{plain}, v1alpha1.UpgradeInPlace},
		"one that something else controls as well":                  {newWindowsMachine("m", controlledBy(plain), func(m *machinev1beta1.Machine) { m.OwnerReferences[0].Kind = "Pool" }), []client.Object{plain}, v1alpha1.UpgradeInPlace},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, append(test.objects, test.machine)...)
			b.mustReconcile()
			if got := b.upgradeStrategy("m"); got != test.want {
				t.Errorf("the strategy is %s, want %s", got, test.want)
			}
			if b.mustReconcile(); b.writes != 0 {
				t.Errorf("%d writes with nothing to do", b.writes)
			}
		})
	}
	t.Run("an instance follows what is chosen later", func(t *testing.T) {
		set, policy := machineSet("a"), disruptionPolicy(v1alpha1.UpgradeInPlace)
		b := newBench(t, set, policy, newWindowsMachine("m", controlledBy(set)))
		update := func(o client.Object) {
			t.Helper()
			if err := b.api.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			b.mustReconcile()
		}
		b.mustReconcile()
		policy.Spec.UpgradeStrategy = v1alpha1.UpgradeReplace
		if update(policy); b.upgradeStrategy("m") != v1alpha1.UpgradeReplace {
			t.Error("the policy is not followed")
		}
		set.Annotations = map[string]string{annotation: "InPlace"}
		if update(set); b.upgradeStrategy("m") != v1alpha1.UpgradeInPlace {
			t.Error("the annotation is not followed")
		}
	})
	t.Run("an annotation that says anything else is reported on the MachineSet, once, and the default holds", func(t *testing.T) {
		for _, value := range []string{"", "inplace", "Replace ", "Rolling", strings.Repeat("x", 5000)} {
			set := machineSet("a", annotation, value)
			b := newBench(t, set, disruptionPolicy(v1alpha1.UpgradeInPlace), newWindowsMachine("m1", controlledBy(set)), newWindowsMachine("m2", controlledBy(set)), awsInstance(newWindowsMachine("m1")), awsInstance(newWindowsMachine("m2")))
			b.mustReconcile()
			if b.upgradeStrategy("m1") != v1alpha1.UpgradeInPlace {
				t.Errorf("with %q the strategy is %s", value, b.upgradeStrategy("m1"))
			}
			b.mustReconcile()
			events := b.drainEvents()
			if len(events) != 1 {
				t.Fatalf("with %q said %q", value, events)
			}
			for _, word := range []string{"Warning", "UpgradeStrategyInvalid", annotation, `"` + value[:min(len(value), 64)], "Replace or InPlace", ": InPlace."} {
				if !strings.Contains(events[0], word) {
					t.Errorf("%q does not say %q", events[0], word)
				}
			}
		}
	})
	t.Run("a MachineSet of no Windows Machine may be annotated with anything", func(t *testing.T) {
		set := machineSet("a", annotation, "Rolling")
		b := newBench(t, set, newWindowsMachine("m", controlledBy(set), removeOSLabel))
		b.mustReconcile()
		if events := b.drainEvents(); len(events) > 0 {
			t.Errorf("said %q", events)
		}
	})
	t.Run("a MachineSet that is not in memory yet is read, and nothing is written when that fails", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("m", controlledBy(missing)))
		b.liveGet = errors.New("timeout")
		if _, err := b.reconcile(); err == nil || b.writes != 0 || !strings.Contains(err.Error(), "openshift-machine-api/gone") {
			t.Errorf("after %v: %d writes", err, b.writes)
		}
	})
	t.Run("an instance that is left alone keeps what it has", func(t *testing.T) {
		set := machineSet("a")
		have := awsInstance(newWindowsMachine("m", controlledBy(set)))
		have.Spec.UpgradeStrategy = v1alpha1.UpgradeInPlace
		b := newBench(t, set, newWindowsMachine("m", controlledBy(set), withLabel(v1alpha1.LabelIgnore, "true")), have)
		if b.mustReconcile(); b.upgradeStrategy("m") != v1alpha1.UpgradeInPlace {
			t.Errorf("the strategy is %s", b.upgradeStrategy("m"))
		}
	})
}

func TestStrategyAnnotation_OtherFieldsIgnored(t *testing.T) {
	updates := queue.Changed(strategyAnnotation)
	for name, test := range map[string]struct {
		after *machinev1beta1.MachineSet
		want  bool
	}{
		"the annotation":             {machineSet("a", v1alpha1.AnnotationUpgradeStrategy, "InPlace"), true},
		"an annotation with nothing": {machineSet("a", v1alpha1.AnnotationUpgradeStrategy, ""), true},
		"another annotation":         {machineSet("a", "autoscaler", "on"), false},
		"another MachineSet":         {machineSet("b"), true},
		"nothing":                    {machineSet("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := updates.Update(event.UpdateEvent{ObjectOld: machineSet("a"), ObjectNew: test.after}); got != test.want {
				t.Errorf("matters: %t", got)
			}
		})
	}
}
