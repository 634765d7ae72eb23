package disruption

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// restoreDisruptions returns the current disruptions if a deleted policy no longer lists them: the disruptions that
// this process remembers, and those visible in the cluster. The result may contain too many disruptions, which end
// like any other.
func (b *policyUpdate) restoreDisruptions() []v1alpha1.Disruption {
	var result []v1alpha1.Disruption
	for _, d := range b.gate.cache.lastStatus().Disruptions {
		if i := b.state.Instance(d.Instance); d.Machine != "" || i != nil && i.UID == d.InstanceUID {
			result = append(result, d)
		}
	}
	for i := range b.state.Instances {
		instance := &b.state.Instances[i]
		entry, shown := b.disruptionFromCluster(instance)
		known := slices.ContainsFunc(result, func(d v1alpha1.Disruption) bool { return d.Instance == instance.Name })
		if shown && !known {
			result = append(result, entry)
		}
	}
	return result
}

// disruptionFromCluster determines from an instance, the Node and the Machine whether the operator is disrupting the
// node: the operator has cordoned the Node, or deletes a Machine with an outdated version or SSH key. The client that
// deleted a Machine is not recorded.
func (b *policyUpdate) disruptionFromCluster(instance *v1alpha1.WindowsInstance) (v1alpha1.Disruption, bool) {
	node, machine := b.state.NodeOf(instance), b.state.MachineOf(instance)
	if node == nil {
		return v1alpha1.Disruption{}, false
	}
	entry := v1alpha1.Disruption{
		Instance: instance.Name, InstanceUID: instance.UID, Node: node.Name, Pool: b.state.poolOf(instance, b.settings),
		Version: b.gate.Version, Since: metav1.NewTime(b.now), HolderIdentity: b.gate.Operator,
	}
	outdated := node.Annotations[v1alpha1.AnnotationVersion] != b.gate.Version
	refused := instance.Status.SSHKeyRejected
	switch {
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved:
		entry.Cause = v1alpha1.CauseRemoval
	case instance.Status.RequestedReboot != nil:
		entry.Cause = v1alpha1.CauseReboot
	case outdated:
		entry.Cause = v1alpha1.CauseUpgrade
	case refused:
		entry.Cause = v1alpha1.CauseKeyChange
	default:
		entry.Cause = v1alpha1.CauseConfiguration
	}
	entry.ConfigurationDigest = disruptionpolicy.ConfigurationOf(disruptionpolicy.Request{Cause: entry.Cause, Configuration: b.gate.desiredConfiguration()})
	if machine != nil && !machine.DeletionTimestamp.IsZero() {
		entry.Machine, entry.Since = machine.Name, *machine.DeletionTimestamp
		return entry, b.state.SetName(instance) != "" && (outdated || refused)
	}
	_, cordoned := node.Annotations[v1alpha1.AnnotationCordoned]
	bound := node.Annotations[v1alpha1.AnnotationInstance] == instance.Name
	return entry, cordoned && bound && instance.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged
}
