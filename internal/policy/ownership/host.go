package ownership

import (
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// SameHost reports whether the statuses of two instances come from one Windows host: same host key and same machine ID.
func SameHost(a, b *v1alpha1.WindowsInstance) bool {
	return a.Status.HostKey != nil && b.Status.HostKey != nil && a.Status.HostKey.Key == b.Status.HostKey.Key &&
		a.Status.Host != nil && b.Status.Host != nil && a.Status.Host.MachineID == b.Status.Host.MachineID
}

// ShareAddress reports whether two hosts have reported a common address.
func ShareAddress(a, b *v1alpha1.WindowsInstance) bool {
	return slices.ContainsFunc(a.Status.Host.Addresses, func(address string) bool {
		return slices.Contains(b.Status.Host.Addresses, address)
	})
}

// GoesOnWith reports whether the host of an instance that is being removed also belongs to the other instance, so that
// it stays as it is. It does not when the other must be left alone and has not configured it. Nor does it when each has
// its own Node and they have no common address: those are two machines made from one image, host key and machine ID
// included.
func GoesOnWith(other, removed *v1alpha1.WindowsInstance) bool {
	if other.Name == removed.Name || other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || !SameHost(other, removed) {
		return false
	}
	switch has := ConfirmedName(other); {
	case has == "":
		return other.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged
	case ConfirmedName(removed) != "" && ConfirmedName(removed) != has:
		return ShareAddress(other, removed)
	}
	return true
}
