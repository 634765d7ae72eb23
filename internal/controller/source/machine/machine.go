package machine

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// maxHostNameLength is the maximum length of a host name. A Machine's name may be longer.
const maxHostNameLength = 63

// machineView contains the fields of a Machine that this package uses. No other fields or changes matter.
type machineView struct {
	windows, ignored, deleting bool
	phase                      string
	addresses                  []corev1.NodeAddress
	labels                     map[string]string
	taints                     []corev1.Taint
	// set is the UID of the controlling MachineSet; empty if there is none.
	set types.UID
}

func newMachineView(machine *machinev1beta1.Machine) machineView {
	v := machineView{
		windows:   nodeidentity.IsWindowsMachine(machine),
		ignored:   machine.Labels[v1alpha1.LabelIgnore] == "true",
		deleting:  machine.DeletionTimestamp != nil,
		addresses: machine.Status.Addresses,
		labels:    machine.Spec.Labels,
		taints:    machine.Spec.Taints,
	}
	if owner := controllingSet(machine); owner != nil {
		v.set = owner.UID
	}
	if machine.Status.Phase != nil {
		v.phase = *machine.Status.Phase
	}
	return v
}

// desiredState returns the desired state of the Machine's host, with the reason if the state is Unmanaged. The
// state is empty while the Machine API is still provisioning the machine, and the operator waits.
func (v machineView) desiredState() (v1alpha1.DesiredState, string) {
	switch {
	case v.deleting, v.phase == machinev1beta1.PhaseDeleting:
		return v1alpha1.DesiredStateUnmanaged, v1alpha1.ReasonMachineDeleting
	case v.ignored, !v.windows:
		return v1alpha1.DesiredStateUnmanaged, v1alpha1.ReasonMachineIgnored
	case v.phase == machinev1beta1.PhaseFailed:
		return v1alpha1.DesiredStateUnmanaged, v1alpha1.ReasonMachineFailed
	case v.phase == machinev1beta1.PhaseProvisioned, v.phase == machinev1beta1.PhaseRunning:
		return v1alpha1.DesiredStateNode, ""
	}
	return "", ""
}

// hostAddress returns the address for reaching the host, or "" if the Machine has no usable address. An internal IPv4
// address is preferred. An internal DNS name is next, if it has a domain. A name without a domain is the machine's
// own name, which vSphere reports before the machine has an address, and which cannot be resolved. External
// addresses are never used: hosts and nodes are reached inside the cluster's network.
//
// The current address is kept while the Machine still has it. vSphere reports the addresses of all adapters in any
// order, including adapters that the pod network creates on the host.
func (v machineView) hostAddress(present string) string {
	for _, usable := range []func(corev1.NodeAddress) bool{isInternalIPv4, isInternalName} {
		var found []string
		for _, a := range v.addresses {
			if usable(a) {
				found = append(found, a.Address)
			}
		}
		if slices.Contains(found, present) {
			return present
		}
		if len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// excludePodNetworks returns the addresses of a Machine without the host's addresses in the pod networks. The host
// is reachable at those addresses only while it is a node.
func excludePodNetworks(addresses []corev1.NodeAddress, podNetworks []string) []corev1.NodeAddress {
	return slices.DeleteFunc(slices.Clone(addresses), func(a corev1.NodeAddress) bool {
		ip, err := netip.ParseAddr(a.Address)
		return err == nil && slices.ContainsFunc(podNetworks, func(network string) bool {
			prefix, err := netip.ParsePrefix(network)
			return err == nil && prefix.Contains(ip)
		})
	})
}

func isInternalIPv4(a corev1.NodeAddress) bool {
	ip, err := netip.ParseAddr(a.Address)
	return err == nil && ip.Is4() && a.Type == corev1.NodeInternalIP && hostlist.ValidateAddress(a.Address) == nil
}

func isInternalName(a corev1.NodeAddress) bool {
	_, err := netip.ParseAddr(a.Address)
	return err != nil && a.Type == corev1.NodeInternalDNS && strings.Contains(a.Address, ".") &&
		hostlist.ValidateAddress(a.Address) == nil
}

// nodeMetadata returns the labels and taints of the Machine for its Node; nil if there are none. R-040
//
// The Machine API does not validate labels and taints. The API server would reject each write to the Node with an
// invalid one, so that invalid ones are omitted and returned as faults.
func (v machineView) nodeMetadata() (metadata *v1alpha1.NodeMetadata, faults []string) {
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(v.labels)) {
		if problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(v.labels[key])); len(problems) > 0 {
			faults = append(faults, fmt.Sprintf("label %.100q: %s", key+"="+v.labels[key], problems[0]))
			continue
		}
		labels[key] = v.labels[key]
	}
	taints := make([]corev1.Taint, 0, len(v.taints))
	for i := range v.taints {
		taint := *v.taints[i].DeepCopy()
		if problems := taintProblems(taint); len(problems) > 0 {
			faults = append(faults, fmt.Sprintf("taint %.100q: %s", taint.ToString(), problems[0]))
			continue
		}
		taints = append(taints, taint)
	}
	if len(labels) == 0 && len(taints) == 0 {
		return nil, faults
	}
	if len(labels) == 0 {
		labels = nil
	}
	return &v1alpha1.NodeMetadata{Labels: labels, Taints: taints}, faults
}

// taintProblems returns the reasons why the API server rejects a Node with the taint.
func taintProblems(taint corev1.Taint) []string {
	problems := slices.Concat(validation.IsQualifiedName(taint.Key), validation.IsValidLabelValue(taint.Value))
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return problems
	}
	return append(problems, "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
}

// hostName returns the computer name that the operator sets on the Machine's host; empty on platforms where the
// cloud sets the name. An invalid computer name is not requested: such a Machine is refused for its name.
func hostName(platform, machine string) string {
	switch configv1.PlatformType(platform) {
	case configv1.VSpherePlatformType, configv1.NutanixPlatformType:
		if len(machine) <= maxHostNameLength {
			return machine
		}
	}
	return ""
}
