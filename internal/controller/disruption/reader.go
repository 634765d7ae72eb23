package disruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/disruptionpolicy"
	"github.com/windows-machine-config/wmco/internal/policy/disturbance"
)

// Phases of Machines.
const (
	machineRunning  = "Running"
	machineFailed   = "Failed"
	machineDeleting = "Deleting"
)

// fleet is a disturbance.NodePool with the objects that it was read from.
type fleet struct {
	disturbance.NodePool
	instances []v1alpha1.WindowsInstance
	// nodes and machines are by the UID of their instance. An instance need not have either.
	nodes    map[types.UID]*corev1.Node
	machines map[types.UID]*machinev1beta1.Machine
	// sets are the names of the MachineSets that control the Machines, by the UID of the instance.
	sets map[types.UID]string
}

// readFleet reads everything that decisions about disruptions are made of from the API server. Of disruptions, it only
// looks at whose they are.
func readFleet(ctx context.Context, live client.Reader, namespace string, settings disruptionpolicy.Settings,
	disruptions []v1alpha1.Disruption) (*fleet, error) {
	var instances v1alpha1.WindowsInstanceList
	var nodes corev1.NodeList
	var machines machinev1beta1.MachineList
	var sets machinev1beta1.MachineSetList
	for _, list := range []struct {
		what     string
		into     client.ObjectList
		options  client.ListOption
		optional bool
	}{
		{"WindowsInstances", &instances, client.InNamespace(namespace), false},
		{"Windows Nodes", &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}, false},
		{"Machines", &machines, client.InNamespace(v1alpha1.MachineNamespace), true},
		{"MachineSets", &sets, client.InNamespace(v1alpha1.MachineNamespace), true},
	} {
		err := live.List(ctx, list.into, list.options)
		if list.optional && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
			continue // the cluster has no Machine API, and so none of them
		}
		if err != nil {
			return nil, fmt.Errorf("list %s to see which nodes are unavailable: %w", list.what, err)
		}
	}
	f := newFleet(instances.Items, nodes.Items, machines.Items)
	for i := range f.instances {
		instance := &f.instances[i]
		disrupted := slices.ContainsFunc(disruptions, func(d v1alpha1.Disruption) bool {
			return d.InstanceUID == instance.UID
		})
		if disrupted || f.wasInService(instance) {
			f.Nodes = append(f.Nodes, f.pooledNode(instance, settings))
		}
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; set.DeletionTimestamp.IsZero() {
			pooled, windows := pooledMachines(set, machines.Items, nodes.Items)
			disrupted := slices.ContainsFunc(disruptions, func(d v1alpha1.Disruption) bool {
				return d.Pool == disruptionpolicy.MachineSetPool(set.Name)
			})
			if windows || disrupted {
				f.MachineSets = append(f.MachineSets, pooled)
			}
		}
	}
	return f, nil
}

// newFleet finds out what belongs together.
func newFleet(instances []v1alpha1.WindowsInstance, nodes []corev1.Node, machines []machinev1beta1.Machine) *fleet {
	f := &fleet{
		instances: instances, nodes: map[types.UID]*corev1.Node{}, machines: map[types.UID]*machinev1beta1.Machine{},
		sets: map[types.UID]string{},
	}
	machineByUID := map[types.UID]*machinev1beta1.Machine{}
	for i := range machines {
		machineByUID[machines[i].UID] = &machines[i]
	}
	for i := range instances {
		instance := &instances[i]
		if reference := instance.Spec.Source.Machine; reference != nil && machineByUID[reference.UID] != nil {
			machine := machineByUID[reference.UID]
			f.machines[instance.UID] = machine
			if owner := metav1.GetControllerOf(machine); owner != nil && owner.Kind == "MachineSet" {
				f.sets[instance.UID] = owner.Name
			}
		}
		if node := nodeNamed(nodes, f.nodeName(instance)); node != nil {
			f.nodes[instance.UID] = node
		}
	}
	return f
}

// instance finds an instance by its name.
func (f *fleet) instance(name string) *v1alpha1.WindowsInstance {
	for i := range f.instances {
		if f.instances[i].Name == name {
			return &f.instances[i]
		}
	}
	return nil
}

func nodeNamed(nodes []corev1.Node, name string) *corev1.Node {
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &nodes[i]
}

// nodeName returns the name of the Node of an instance: the one it has claimed; for a Machine that was configured by an
// operator before this one, the one that its Machine has.
func (f *fleet) nodeName(instance *v1alpha1.WindowsInstance) string {
	if reference := instance.Status.NodeRef; reference != nil && reference.Name != "" {
		return reference.Name
	}
	if machine := f.machines[instance.UID]; machine != nil && machine.Status.NodeRef != nil {
		return machine.Status.NodeRef.Name
	}
	return ""
}

// wasInService reports whether the node of an instance takes pods, or has taken some. The version of an instance is
// written when its node was proven for the first time, and kept.
func (f *fleet) wasInService(instance *v1alpha1.WindowsInstance) bool {
	node := f.nodes[instance.UID]
	return instance.Status.Version != "" || node != nil && !unproven(node)
}

func (f *fleet) pooledNode(instance *v1alpha1.WindowsInstance, settings disruptionpolicy.Settings) disturbance.Node {
	pooled := disturbance.Node{
		Instance: instance.Name, UID: instance.UID, Node: f.nodeName(instance),
		Pool: f.pool(instance, settings), Failure: instance.Status.FailedChange, Gone: f.gone(instance),
	}
	node := f.nodes[instance.UID]
	// What both the Node and its instance say: a kubelet may write annotations on its own Node.
	if node != nil && node.Annotations[v1alpha1.AnnotationVersion] == instance.Status.Version {
		pooled.Version = instance.Status.Version
	}
	pooled.Ready, pooled.Since = readiness(node, instance)
	return pooled
}

// pool returns the pool of an instance's node.
func (f *fleet) pool(instance *v1alpha1.WindowsInstance, settings disruptionpolicy.Settings) string {
	if instance.Spec.Source.Machine != nil {
		if set := f.sets[instance.UID]; set != "" {
			return disruptionpolicy.MachineSetPool(set)
		}
		return disruptionpolicy.MachinesPool
	}
	var labels map[string]string
	if node := f.nodes[instance.UID]; node != nil {
		labels = node.Labels
	}
	return settings.HostPool(labels)
}

// gone reports whether nobody waits for the node any more: its Machine is deleted, has failed or is to be ignored, or
// an administrator has given the host up.
func (f *fleet) gone(instance *v1alpha1.WindowsInstance) bool {
	if instance.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged ||
		instance.Annotations[v1alpha1.AnnotationForgetHost] == "true" {
		return true
	}
	if instance.Spec.Source.Machine == nil {
		return false
	}
	machine := f.machines[instance.UID]
	return machine == nil || going(machine) || ptr.Deref(machine.Status.Phase, "") == machineFailed ||
		machine.Labels[v1alpha1.LabelIgnore] == "true"
}

// readiness reports whether the node works and was proven to, and since when that is so or not.
func readiness(node *corev1.Node, instance *v1alpha1.WindowsInstance) (ready bool, since time.Time) {
	proven := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionReady)
	if node == nil {
		if proven != nil {
			return false, proven.LastTransitionTime.Time
		}
		return false, instance.CreationTimestamp.Time
	}
	since = node.CreationTimestamp.Time
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			ready, since = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.Time
		}
	}
	if !ready {
		return false, since
	}
	if unproven(node) {
		return false, node.CreationTimestamp.Time
	}
	// A kubelet that is restarted stays Ready: since when it works with what it has now is what the instance says.
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
		condition := meta.FindStatusCondition(instance.Status.Conditions, name)
		if condition != nil && condition.Status == metav1.ConditionTrue && condition.LastTransitionTime.After(since) {
			since = condition.LastTransitionTime.Time
		}
	}
	return true, since
}

// pooledMachines counts the Machines of a MachineSet. It tells, too, whether the set is one of Windows.
func pooledMachines(set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine,
	nodes []corev1.Node) (result disturbance.MachineSet, windows bool) {
	windows = set.Spec.Template.Labels[v1alpha1.LabelMachineOSID] == v1alpha1.MachineOSIDWindows
	result = disturbance.MachineSet{Name: set.Name, Replicas: int(ptr.Deref(set.Spec.Replicas, 1))}
	result.Missing = result.Replicas
	for i := range machines {
		machine := &machines[i]
		if !metav1.IsControlledBy(machine, set) {
			continue
		}
		windows = windows || machine.Labels[v1alpha1.LabelMachineOSID] == v1alpha1.MachineOSIDWindows
		if going(machine) {
			result.Leaving = append(result.Leaving, disturbance.LeavingMachine{Name: machine.Name, Why: heldUpBy(machine)})
			continue
		}
		result.Staying = append(result.Staying, machine.Name)
		var node *corev1.Node
		if machine.Status.NodeRef != nil {
			node = nodeNamed(nodes, machine.Status.NodeRef.Name)
		}
		phase := ptr.Deref(machine.Status.Phase, "")
		switch {
		case phase == machineFailed, machine.Labels[v1alpha1.LabelIgnore] == "true": // nobody waits for it
			result.Missing--
			result.Failed++
		case phase == machineRunning && node != nil && !unproven(node):
			result.Missing-- // if it is not Ready, it is one of the nodes that are not
			if nodeReady(node) {
				result.Running++
			}
		}
	}
	result.Missing = max(0, result.Missing)
	return result, windows
}

// heldUpBy is what the Machine API says that it waits for before it goes on with the deletion of a Machine; "" when it
// says nothing.
func heldUpBy(machine *machinev1beta1.Machine) string {
	for _, kind := range []machinev1beta1.ConditionType{machinev1beta1.MachineDrainable, machinev1beta1.MachineDrained,
		machinev1beta1.MachineTerminable} {
		for _, condition := range machine.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionFalse {
				return condition.Message
			}
		}
	}
	return ""
}

func going(machine *machinev1beta1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() || ptr.Deref(machine.Status.Phase, "") == machineDeleting
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unproven reports whether a Node has the operator's start-up taint: it does not take pods yet.
func unproven(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.TaintNotReady {
			return true
		}
	}
	return false
}
