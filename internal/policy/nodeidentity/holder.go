package nodeidentity

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// HostKeyHolder returns the other instance that has key, in base64, as its pinned host key; nil if there is none. An
// instance with a Node has priority over one without.
func HostKeyHolder(instance *v1alpha1.WindowsInstance, key string, others []v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	var holder *v1alpha1.WindowsInstance
	for i := range others {
		other := &others[i]
		if other.Name == instance.Name || other.Status.HostKey == nil || other.Status.HostKey.Key != key {
			continue
		}
		if holder == nil || ConfirmedName(holder) == "" {
			holder = other
		}
	}
	return holder
}

// CanAcceptHostKey reports whether an administrator can accept the pinned host key of another instance instead of an
// instance's own. If both have Nodes, the key belongs to the host of the other Node: changes for one node would be
// made on the host of the other.
func CanAcceptHostKey(instance, holder *v1alpha1.WindowsInstance) bool {
	own := ConfirmedName(instance)
	if holder == nil || own == "" {
		return true
	}
	other := ConfirmedName(holder)
	return other == "" || other == own
}

// DescribeHolder describes the instance of another host.
func DescribeHolder(holder *v1alpha1.WindowsInstance) string {
	described := fmt.Sprintf("WindowsInstance %s (%s)", holder.Name, holder.Spec.Address)
	if name := ConfirmedName(holder); name != "" {
		described += ", Node " + name
	}
	return described
}
