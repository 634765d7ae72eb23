package openshift

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
)

// values contains the values for the templates.
type values struct {
	Cluster
	Version, ReleaseImage, OSImage, PauseImage  string
	ClusterName, BaseDomain, InfrastructureName string
	// CloudConfig is the configuration of the cloud provider; "" if the platform has none.
	CloudConfig           string
	ExternalCloudProvider bool
	// WorkerMachineSet is the name of the installation's MachineSet for Linux workers.
	WorkerMachineSet string
	// RenderedWorker is the name of the MachineConfig with WorkerIgnition, which is JSON.
	RenderedWorker, WorkerIgnition string
}

func newValues(c Cluster) (values, error) {
	name, base, found := strings.Cut(c.Domain, ".")
	if !found {
		return values{}, fmt.Errorf("domain %q must have the cluster's name and a base domain, such as lab.example.com",
			c.Domain)
	}
	if err := ValidatePlatform(c.Platform); err != nil {
		return values{}, err
	}
	const release = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:"
	v := values{
		Cluster:               c,
		Version:               Version,
		ReleaseImage:          "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("5a", 32),
		OSImage:               release + strings.Repeat("05", 32),
		PauseImage:            release + strings.Repeat("0a", 32),
		ClusterName:           name,
		BaseDomain:            base,
		InfrastructureName:    name + "-x7k2p",
		ExternalCloudProvider: ExternalCloudProvider(c.Platform),
	}
	v.CloudConfig = cloudConfig(c.Platform, v.InfrastructureName)
	v.WorkerMachineSet = workerMachineSet(c.Platform, v.InfrastructureName)
	ignition, err := workerIgnition(v)
	if err != nil {
		return values{}, err
	}
	v.WorkerIgnition = string(ignition)
	// As in the machine config operator, the name contains a hash of the content.
	sum := md5.Sum(ignition)
	v.RenderedWorker = "rendered-worker-" + hex.EncodeToString(sum[:])
	return v, nil
}

// workerMachineSet returns the name that the installer uses for the first MachineSet of a platform.
func workerMachineSet(platform, infrastructure string) string {
	suffix := map[string]string{"AWS": "-us-east-1a", "Azure": "-centralus1", "GCP": "-a", "VSphere": "-0"}[platform]
	return infrastructure + "-worker" + suffix
}

func cloudConfig(platform, infrastructure string) string {
	switch platform {
	case "AWS":
		return "[Global]\n"
	case "Azure":
		return fmt.Sprintf(`{
	"cloud": "AzurePublicCloud",
	"tenantId": "00000000-0000-0000-0000-000000000001",
	"subscriptionId": "00000000-0000-0000-0000-000000000002",
	"resourceGroup": "%[1]s-rg",
	"location": "centralus",
	"vnetName": "%[1]s-vnet",
	"vnetResourceGroup": "%[1]s-rg",
	"subnetName": "%[1]s-worker-subnet",
	"securityGroupName": "%[1]s-nsg",
	"loadBalancerSku": "standard",
	"useInstanceMetadata": true,
	"useManagedIdentityExtension": true
}
`, infrastructure)
	case "GCP":
		return "[global]\nproject-id      = lab-project\nregional        = true\nmultizone       = true\nnode-tags       = " +
			infrastructure + "-worker\n"
	case "VSphere":
		return "global:\n  insecureFlag: true\n  secretName: vsphere-creds\n  secretNamespace: kube-system\nvcenter: {}\n"
	default:
		return ""
	}
}
