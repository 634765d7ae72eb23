package replacement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// overview is the basis of a decision about replacements, with the underlying objects. For each Machine that can be
// replaced, the overview contains an instance.
type overview struct {
	*fleet.Fleet
	policyFleet replacementpolicy.Fleet
	machines    map[string]*machinev1beta1.Machine // by name
}

// newOverview returns the overview of a fleet.
func newOverview(f *fleet.Fleet, version string, successors successors) overview {
	o := overview{Fleet: f, machines: map[string]*machinev1beta1.Machine{}}
	o.policyFleet.ClusterRefusal = successors.refusal
	controlled := map[types.UID]int{} // number of Machines by controlling MachineSet
	windows := map[types.UID]bool{}   // MachineSets with a Windows Machine
	for i := range f.Machines {
		machine := &f.Machines[i]
		set := f.SetOf(machine)
		if set != nil {
			controlled[set.UID]++
		}
		if !nodeidentity.IsWindowsMachine(machine) {
			continue
		}
		if set != nil {
			windows[set.UID] = true
		}
		instance := f.InstanceOf(machine)
		member := fleetMachine(machine, set, instance, version)
		o.policyFleet.Machines = append(o.policyFleet.Machines, member)
		o.machines[machine.Name] = machine
		node := f.Node(member.Node)
		if node == nil || instance == nil || instance.Status.NodeRef == nil || instance.Status.NodeRef.Name != node.Name {
			node = nil
		} else {
			o.policyFleet.Nodes = append(o.policyFleet.Nodes, fleetNode(node, instance.Status.PublicKeyHash))
		}
		successors.recordSuccessor(&o.policyFleet.Machines[len(o.policyFleet.Machines)-1], machine, instance, node)
	}
	for i := range f.MachineSets {
		if set := &f.MachineSets[i]; windows[set.UID] || nodeidentity.IsWindowsMachineSet(set) {
			o.policyFleet.Sets = append(o.policyFleet.Sets, fleetSet(set, controlled[set.UID]))
		}
	}
	return o
}

// instanceByMachine returns the instance of a Machine that can be replaced.
func (o overview) instanceByMachine(machine string) *v1alpha1.WindowsInstance {
	return o.InstanceOf(o.machines[machine])
}

// configuredVersion returns the operator version that configured the Node of a Machine.
func (o overview) configuredVersion(machine *machinev1beta1.Machine) string {
	for _, node := range o.policyFleet.Nodes {
		if machine.Status.NodeRef != nil && node.Name == machine.Status.NodeRef.Name {
			return node.Version
		}
	}
	return ""
}

func fleetMachine(machine *machinev1beta1.Machine, set *machinev1beta1.MachineSet, instance *v1alpha1.WindowsInstance,
	version string) replacementpolicy.Machine {
	m := replacementpolicy.Machine{
		Name: machine.Name, Phase: ptr.Deref(machine.Status.Phase, ""),
		Deleting: !machine.DeletionTimestamp.IsZero(),
		Ignored:  machine.Labels[v1alpha1.LabelIgnore] == "true",
	}
	if set != nil {
		m.Set = set.Name
	}
	m.Node = fleet.NodeNameOf(machine)
	if instance != nil {
		m.Paused, m.Refused, m.NeedsReplacement = instance.Spec.Paused, instance.Status.SSHKeyRejected, needsReplacement(instance, version)
	}
	return m
}

// needsReplacement reports whether the host is outdated and must be upgraded by a replacement, according to the
// instance controller. A result that another operator version wrote before this operator started applied to that
// version. R-146
func needsReplacement(instance *v1alpha1.WindowsInstance, version string) bool {
	return instance.Spec.UpgradeStrategy == v1alpha1.UpgradeReplace && instance.Status.ReplacementVersion == version
}

func fleetSet(set *machinev1beta1.MachineSet, machines int) replacementpolicy.MachineSet {
	return replacementpolicy.MachineSet{
		Name: set.Name, Replicas: int(ptr.Deref(set.Spec.Replicas, 1)), Machines: machines,
		Deleting:    !set.DeletionTimestamp.IsZero(),
		ExternalKey: !hasOperatorKey(set),
		Image:       imageOf(set.Spec.Template.Spec.ProviderSpec.Value),
	}
}

// hasOperatorKey reports whether new Machines of a set accept the key in the operator's user data. All platforms use
// the same field for the user data. vSphere does not run user data; there, the template contains the key.
func hasOperatorKey(set *machinev1beta1.MachineSet) bool {
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

// fleetNode describes a Node. The key hash counts only if the annotation and the instance of the Machine agree,
// because other clients can annotate a Node.
func fleetNode(node *corev1.Node, key string) replacementpolicy.Node {
	_, changing := node.Annotations[v1alpha1.AnnotationCordoned]
	n := replacementpolicy.Node{Name: node.Name, Version: node.Annotations[v1alpha1.AnnotationVersion], Changing: changing}
	if node.Annotations[v1alpha1.AnnotationPubKeyHash] == key {
		n.KeyHash = key
	}
	n.Ready = nodeidentity.IsReady(node) && !nodeidentity.HasStartupTaint(node)
	return n
}

// readKeyChange returns the state of the key change.
func (r *Reconciler) readKeyChange(ctx context.Context, key sshkey.Key) (replacementpolicy.KeyChange, error) {
	change := replacementpolicy.KeyChange{Current: key.Hash()}
	previous, found, err := sshkeysecret.Previous(ctx, r.Live, r.Namespace)
	switch {
	case err != nil && !errors.Is(err, sshkeysecret.ErrInvalid):
		return change, err
	case found:
		// An unusable key counts as missing, and is reported elsewhere.
		change.Previous = previous.Hash()
	}
	if change.Previous != r.previous {
		// From now on, hosts that accept the previous key can receive the current key.
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
