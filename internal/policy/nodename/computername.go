package nodename

import (
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// computerName returns the current or desired computer name of an instance's host; empty before the first facts.
func computerName(instance *v1alpha1.WindowsInstance) string {
	if instance.Spec.HostName != "" || instance.Status.Host == nil {
		return instance.Spec.HostName
	}
	return instance.Status.Host.Name
}

// hasSameComputerName reports whether the hosts of two instances have the same computer name. Their node names can
// differ nevertheless if the cloud names the nodes. The kubelet reports the computer name as the machine ID of its
// Node, and hybrid-overlay-node considers each Node with the local machine ID to be its own. It would therefore
// recreate its HNS network alternately with the subnets of both Nodes. Source: OVN-Kubernetes,
// hybrid-overlay/pkg/controller/ho_node_windows.go.
func hasSameComputerName(a, b *v1alpha1.WindowsInstance) bool {
	name := computerName(a)
	return name != "" && strings.EqualFold(name, computerName(b))
}
