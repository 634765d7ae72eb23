package nodeidentity

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// HostKeyHolder returns the other instance whose pinned host key is key, in base64; nil for none. An instance with a Node goes
// before one without.
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

// CanAcceptHostKey reports whether an administrator can accept the pinned host key of another instance in place of an
// instance's own. If both have Nodes, the key belongs to the host of the other Node: work that is meant for one node
// would be done on the host of the other.
func CanAcceptHostKey(instance, holder *v1alpha1.WindowsInstance) bool {
	own := ConfirmedName(instance)
	if holder == nil || own == "" {
		return true
	}
	other := ConfirmedName(holder)
	return other == "" || other == own
}

// DescribeHolder returns the words for the instance of another host.
func DescribeHolder(holder *v1alpha1.WindowsInstance) string {
	described := fmt.Sprintf("WindowsInstance %s (%s)", holder.Name, holder.Spec.Address)
	if name := ConfirmedName(holder); name != "" {
		described += ", Node " + name
	}
	return described
}
