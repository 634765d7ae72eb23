package disruption

import (
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// fleetState is the fleet as seen by decisions about disruptions.
type fleetState struct {
	*fleet.Fleet
	pool disruptionpolicy.NodePool
}

// newFleetState returns the state of a fleet. From the disruptions, it uses only the affected nodes and pools.
func newFleetState(f *fleet.Fleet, settings disruptionpolicy.Settings, disruptions []v1alpha1.Disruption) *fleetState {
	s := &fleetState{Fleet: f}
	for i := range f.Instances {
		instance := &f.Instances[i]
		disrupted := slices.ContainsFunc(disruptions, func(d v1alpha1.Disruption) bool { return d.InstanceUID == instance.UID })
		if disrupted || s.wasInService(instance) {
			s.pool.Nodes = append(s.pool.Nodes, s.pooledNode(instance, settings))
		}
	}
	for i := range f.MachineSets {
		if set := &f.MachineSets[i]; set.DeletionTimestamp.IsZero() {
			pooled, windows := pooledMachines(set, f)
			disrupted := slices.ContainsFunc(disruptions, func(d v1alpha1.Disruption) bool {
				return d.Pool == disruptionpolicy.MachineSetPool(set.Name)
			})
			if windows || disrupted {
				s.pool.MachineSets = append(s.pool.MachineSets, pooled)
			}
		}
	}
	return s
}

// wasInService reports whether the node of an instance is or was in service. The version of an instance is written
// when the node is first verified, and never unset.
func (s *fleetState) wasInService(instance *v1alpha1.WindowsInstance) bool {
	node := s.NodeOf(instance)
	return instance.Status.Version != "" || node != nil && !nodeidentity.HasStartupTaint(node)
}

func (s *fleetState) pooledNode(instance *v1alpha1.WindowsInstance, settings disruptionpolicy.Settings) disruptionpolicy.Node {
	pooled := disruptionpolicy.Node{
		Instance: instance.Name, UID: instance.UID, Node: s.NodeName(instance),
		Pool: s.poolOf(instance, settings), Failure: instance.Status.FailedChange, Gone: s.isGone(instance),
	}
	node := s.NodeOf(instance)
	// Node and instance must agree, because a kubelet may write annotations on its own Node.
	if node != nil && node.Annotations[v1alpha1.AnnotationVersion] == instance.Status.Version {
		pooled.Version, pooled.Configuration = instance.Status.Version, instance.Status.ConfigurationDigest
	}
	pooled.Cordoned = node != nil && node.Spec.Unschedulable
	pooled.Ready, pooled.Since, pooled.Reported = nodeReadiness(node, instance)
	return pooled
}

// poolOf returns the pool of an instance's node.
func (s *fleetState) poolOf(instance *v1alpha1.WindowsInstance, settings disruptionpolicy.Settings) string {
	if instance.Spec.Source.Machine != nil {
		if set := s.SetName(instance); set != "" {
			return disruptionpolicy.MachineSetPool(set)
		}
		return disruptionpolicy.MachinesPool
	}
	var labels map[string]string
	if node := s.NodeOf(instance); node != nil {
		labels = node.Labels
	}
	return settings.HostPool(labels)
}

// isGone reports whether the node is no longer expected to return: the Machine is deleted, failed or ignored, or an
// administrator has given up the host.
func (s *fleetState) isGone(instance *v1alpha1.WindowsInstance) bool {
	if instance.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged || instance.Annotations[v1alpha1.AnnotationForgetHost] == "true" {
		return true
	}
	if instance.Spec.Source.Machine == nil {
		return false
	}
	machine := s.MachineOf(instance)
	return machine == nil || isDeleting(machine) || ptr.Deref(machine.Status.Phase, "") == machinev1beta1.PhaseFailed || machine.Labels[v1alpha1.LabelIgnore] == "true"
}

// nodeReadiness reports whether the node is ready and verified, and since when, according to the API server and the
// operator. The time is zero if only the host knows it. reported is the last transition time in the kubelet's
// report.
func nodeReadiness(node *corev1.Node, instance *v1alpha1.WindowsInstance) (
	ready bool, since time.Time, reported *metav1.Time,
) {
	if node == nil {
		return false, time.Time{}, nil
	}
	if condition := nodeidentity.ReadyCondition(node); condition != nil {
		ready, reported = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.DeepCopy()
	}
	switch {
	case nodeidentity.HasStartupTaint(node): // since the registration
		return false, node.CreationTimestamp.Time, reported
	case !ready:
		return false, time.Time{}, reported
	}
	since = node.CreationTimestamp.Time
	// A restarted kubelet stays Ready. The instance records since when the node is ready with the current
	// configuration.
	if proven := instance.Status.Readiness; proven != nil && proven.Since.After(since) {
		since = proven.Since.Time
	}
	return true, since, reported
}

// pooledMachines counts the Machines of a MachineSet, and reports whether the MachineSet is for Windows.
func pooledMachines(set *machinev1beta1.MachineSet, f *fleet.Fleet) (result disruptionpolicy.MachineSet, windows bool) {
	windows = nodeidentity.IsWindowsMachineSet(set)
	result = disruptionpolicy.MachineSet{Name: set.Name, Replicas: int(ptr.Deref(set.Spec.Replicas, 1))}
	result.Missing = result.Replicas
	for i := range f.Machines {
		machine := &f.Machines[i]
		if !metav1.IsControlledBy(machine, set) {
			continue
		}
		windows = windows || nodeidentity.IsWindowsMachine(machine)
		if isDeleting(machine) {
			result.Leaving = append(result.Leaving, disruptionpolicy.LeavingMachine{Name: machine.Name, Why: deletionBlocker(machine)})
			continue
		}
		result.Staying = append(result.Staying, machine.Name)
		node := f.Node(fleet.NodeNameOf(machine))
		phase := ptr.Deref(machine.Status.Phase, "")
		switch {
		case phase == machinev1beta1.PhaseFailed, machine.Labels[v1alpha1.LabelIgnore] == "true": // never becomes a node
			result.Missing--
			result.Failed++
		case phase == machinev1beta1.PhaseRunning && node != nil && !nodeidentity.HasStartupTaint(node):
			result.Missing-- // a node that is not Ready is counted separately
			if nodeidentity.IsReady(node) {
				result.Running++
			}
		}
	}
	result.Missing = max(0, result.Missing)
	return result, windows
}

// deletionBlocker returns the condition message about the blocked deletion of a Machine; "" if there is none.
func deletionBlocker(machine *machinev1beta1.Machine) string {
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

func isDeleting(machine *machinev1beta1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() || ptr.Deref(machine.Status.Phase, "") == machinev1beta1.PhaseDeleting
}
