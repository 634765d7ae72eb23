package replacement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/policy/turnover"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// fleet is what a decision is made of, with the objects that it was read from, by the Machine's name. Each Machine that
// can be replaced has its instance there.
type fleet struct {
	turnover.Fleet
	machines  map[string]*machinev1beta1.Machine
	instances map[string]*v1alpha1.WindowsInstance
}

// version returns the version of the operator that has configured the Node of a Machine.
func (f fleet) version(machine *machinev1beta1.Machine) string {
	for _, node := range f.Nodes {
		if machine.Status.NodeRef != nil && node.Name == machine.Status.NodeRef.Name {
			return node.Version
		}
	}
	return ""
}

// readFleet reads it from the API server.
func (r *Reconciler) readFleet(ctx context.Context) (fleet, error) {
	var machines machinev1beta1.MachineList
	var sets machinev1beta1.MachineSetList
	var nodes corev1.NodeList
	var instances v1alpha1.WindowsInstanceList
	for _, list := range []struct {
		what    string
		into    client.ObjectList
		options client.ListOption
	}{
		{"Machines", &machines, client.InNamespace(v1alpha1.MachineNamespace)},
		{"MachineSets", &sets, client.InNamespace(v1alpha1.MachineNamespace)},
		{"WindowsInstances", &instances, client.InNamespace(r.Namespace)},
		{"Windows Nodes", &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}},
	} {
		if err := r.Live.List(ctx, list.into, list.options); err != nil {
			return fleet{}, fmt.Errorf("list %s to see whether a Machine can be replaced: %w", list.what, err)
		}
	}
	return newFleet(machines.Items, sets.Items, nodes.Items, instances.Items, r.Version), nil
}

func newFleet(machines []machinev1beta1.Machine, sets []machinev1beta1.MachineSet, nodes []corev1.Node,
	instances []v1alpha1.WindowsInstance, version string) fleet {
	f := fleet{machines: map[string]*machinev1beta1.Machine{}, instances: map[string]*v1alpha1.WindowsInstance{}}
	byMachine := map[types.UID]*v1alpha1.WindowsInstance{}
	for i := range instances {
		if reference := instances[i].Spec.Source.Machine; reference != nil {
			byMachine[reference.UID] = &instances[i]
		}
	}
	controlled := map[types.UID]int{}                   // Machines by the MachineSet that controls them
	windows := map[types.UID]bool{}                     // MachineSets that control a Windows Machine
	ofMachine := map[string]*v1alpha1.WindowsInstance{} // by Node; nil where no instance of the Machine has that Node
	for i := range machines {
		machine := &machines[i]
		set := controllingSet(machine, sets)
		if set != nil {
			controlled[set.UID]++
		}
		if machine.Labels[v1alpha1.LabelMachineOSID] != v1alpha1.MachineOSIDWindows {
			continue
		}
		if set != nil {
			windows[set.UID] = true
		}
		instance := byMachine[machine.UID]
		member := fleetMachine(machine, set, instance, version)
		f.Machines = append(f.Machines, member)
		f.machines[machine.Name], f.instances[machine.Name] = machine, instance
		if instance != nil && instance.Status.NodeRef != nil && instance.Status.NodeRef.Name == member.Node {
			ofMachine[member.Node] = instance
		}
	}
	for i := range sets {
		set := &sets[i]
		if windows[set.UID] || set.Spec.Template.Labels[v1alpha1.LabelMachineOSID] == v1alpha1.MachineOSIDWindows {
			f.Sets = append(f.Sets, fleetSet(set, controlled[set.UID]))
		}
	}
	for i := range nodes {
		if instance := ofMachine[nodes[i].Name]; instance != nil {
			f.Nodes = append(f.Nodes, fleetNode(&nodes[i], instance.Status.PublicKeyHash))
		}
	}
	return f
}

// controllingSet returns the MachineSet that would make a Machine again; nil when there is none.
func controllingSet(machine *machinev1beta1.Machine, sets []machinev1beta1.MachineSet) *machinev1beta1.MachineSet {
	owner := metav1.GetControllerOf(machine)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(sets, func(s machinev1beta1.MachineSet) bool { return s.UID == owner.UID })
	if i < 0 {
		return nil
	}
	return &sets[i]
}

func fleetMachine(machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet, instance *v1alpha1.WindowsInstance,
	version string) turnover.Machine {
	m := turnover.Machine{
		Name: machine.Name, Phase: ptr.Deref(machine.Status.Phase, ""),
		Deleting: !machine.DeletionTimestamp.IsZero(),
		Ignored:  machine.Labels[v1alpha1.LabelIgnore] == "true",
	}
	if set != nil {
		m.Set = set.Name
	}
	if machine.Status.NodeRef != nil {
		m.Node = machine.Status.NodeRef.Name
	}
	if instance != nil {
		m.Paused, m.Refused, m.Awaits = instance.Spec.Paused, instance.Status.KeyRefused, awaits(instance, version)
	}
	return m
}

// awaits reports whether the host differs from what it should be, and comes to that by being replaced: the instance
// controller says so when it has compared. What one of another version has said, before this operator was started, was
// for that version. R-146
func awaits(instance *v1alpha1.WindowsInstance, version string) bool {
	return instance.Spec.UpgradeStrategy == v1alpha1.UpgradeReplace && instance.Status.AwaitsVersion == version
}

func fleetSet(set *machinev1beta1.MachineSet, machines int) turnover.MachineSet {
	return turnover.MachineSet{
		Name: set.Name, Replicas: int(ptr.Deref(set.Spec.Replicas, 1)), Machines: machines,
		Deleting: !set.DeletionTimestamp.IsZero(),
		OwnKey:   !givesKey(set),
	}
}

// givesKey reports whether new Machines of a set accept the key that is in the operator's user data. All platforms name
// the user data in the same place. On vSphere nobody runs it: the key is in the template.
func givesKey(set *machinev1beta1.MachineSet) bool {
	var spec struct {
		Kind           string `json:"kind"`
		UserDataSecret struct {
			Name string `json:"name"`
		} `json:"userDataSecret"`
	}
	value := set.Spec.Template.Spec.ProviderSpec.Value
	if value == nil || json.Unmarshal(value.Raw, &spec) != nil {
		return false
	}
	return spec.UserDataSecret.Name == userdata.SecretName && spec.Kind != "VSphereMachineProviderSpec"
}

// fleetNode describes a Node. Its key is what both its annotation and the instance of its Machine say: others can
// annotate a Node.
func fleetNode(node *corev1.Node, key string) turnover.Node {
	_, changing := node.Annotations[v1alpha1.AnnotationCordoned]
	n := turnover.Node{Name: node.Name, Version: node.Annotations[v1alpha1.AnnotationVersion], Changing: changing}
	if node.Annotations[v1alpha1.AnnotationPubKeyHash] == key {
		n.KeyHash = key
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	starting := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.TaintNotReady
	})
	n.Ready = ready && !starting
	return n
}

// keyChange reads what is known of the key.
func (r *Reconciler) keyChange(ctx context.Context, key sshkey.Key) (turnover.KeyChange, error) {
	change := turnover.KeyChange{Present: key.Hash()}
	previous, found, err := keys.Previous(ctx, r.Live, r.Namespace)
	switch {
	case err != nil && !errors.Is(err, keys.ErrInvalid):
		return change, err
	case found:
		// One that cannot be used counts as missing, and is reported elsewhere.
		change.Previous = previous.Hash()
	}
	if change.Previous != r.previous {
		// What it opens may be given the present key from now on.
		r.previous, r.since = change.Previous, r.Clock.Now()
	}
	change.Known = r.Clock.Since(r.since)
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName}
	if err := r.Live.Get(ctx, name, secret); err != nil {
		return change, client.IgnoreNotFound(fmt.Errorf("read Secret %s: %w", name, err))
	}
	settings, err := userdata.ParseHeader(secret.Data[userdata.SecretKey])
	change.UserData = err == nil && settings.PublicKey == key.AuthorizedKey()
	return change, nil
}
