package nodename

import (
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// computerName returns the name that an instance's host has, or is to be given; empty before the host was asked.
func computerName(instance *v1alpha1.WindowsInstance) string {
	if instance.Spec.HostName != "" || instance.Status.Host == nil {
		return instance.Spec.HostName
	}
	return instance.Status.Host.Name
}

// sameComputerName reports whether two instances' hosts have one computer name. Where the cloud names the nodes, they
// can have different node names all the same. The kubelet gives its Node the computer name for a machine ID, and
// hybrid-overlay-node takes each Node with the machine ID of its own for itself: it would make its HNS network with the
// subnet of one and of the other in turn. Source: OVN-Kubernetes, hybrid-overlay/pkg/controller/ho_node_windows.go.
func sameComputerName(a, b *v1alpha1.WindowsInstance) bool {
	name := computerName(a)
	return name != "" && strings.EqualFold(name, computerName(b))
}
