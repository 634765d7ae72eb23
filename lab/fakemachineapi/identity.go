package fakemachineapi

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// instanceID returns the ID of a Machine's virtual machine, derived from the UID. A controller that was killed
// between creating and recording the virtual machine therefore finds it again. A later Machine with the same
// name has another ID.
func instanceID(platform string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	if platform == "AWS" {
		return fmt.Sprintf("i-%x", sum[:9])[:len("i-")+17]
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// providerID returns a provider ID in the format of the platform; a platform without a cloud has none.
func providerID(platform, machine, id string, spec providerSpec) string {
	switch platform {
	case "AWS":
		return "aws:///" + spec.Zone + "/" + id
	case "Azure":
		return "azure:///subscriptions/" + id + "/resourceGroups/" + spec.Group +
			"/providers/Microsoft.Compute/virtualMachines/" + machine
	case "GCP":
		return "gce://" + spec.Group + "/" + spec.Zone + "/" + machine
	case "VSphere":
		return "vsphere://" + id
	case "Nutanix":
		return "nutanix://" + id
	default:
		return ""
	}
}
