package fakeopenshift

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// errCloudDelayed makes the queue retry.
var errCloudDelayed = errors.New("the cloud controller does not work yet")

// errNoVirtualMachine makes the queue retry.
var errNoVirtualMachine = errors.New("no VM found: no guest reports the node's name as its DNS name")

// hasVirtualMachine reports whether the cloud controller finds the virtual machine of a node. The controller for
// vSphere searches by the full DNS name of the guest, and finds no guest if the case of both names differs. Source:
// kubernetes/cloud-provider-vsphere, pkg/cloudprovider/vsphere/instances.go, InstanceID; nodemanager.go,
// DiscoverNode; pkg/common/connectionmanager/search.go.
func (s *simulator) hasVirtualMachine(node *corev1.Node) bool {
	if s.Platform != "VSphere" || s.GuestNames == nil || node.Labels[corev1.LabelOSStable] != "windows" {
		return true
	}
	names := s.GuestNames()
	return len(names) == 0 || slices.Contains(names, node.Name)
}

// isCloudDelayed reports whether the cloud controller is still delayed.
func (o Options) isCloudDelayed() bool {
	if o.CloudWorks == nil {
		return false
	}
	select {
	case <-o.CloudWorks:
		return false
	default:
		return true
	}
}

// initializeNode initializes a new node as the cloud controller of the platform does. In one write, it sets the
// provider ID and the known labels for instance type, region and zone, and removes the taint. On Azure,
// cloud-node-manager on the node does this, which Linux nodes of the lab do not have. Source:
// k8s.io/cloud-provider/controllers/node, syncNode.
func (s *simulator) initializeNode(ctx context.Context, name string) error {
	node, err := s.nodes.Get(name)
	if err != nil {
		return ignoreGone(err)
	}
	isUninitialized := func(t corev1.Taint) bool { return t.Key == uninitializedTaint }
	if !slices.ContainsFunc(node.Spec.Taints, isUninitialized) || !hasCloud(s.Platform) {
		return nil
	}
	if s.Platform == "Azure" && node.Labels[corev1.LabelOSStable] == "windows" {
		return nil
	}
	if s.isCloudDelayed() {
		return errCloudDelayed
	}
	if !s.hasVirtualMachine(node) {
		return errNoVirtualMachine
	}
	id := node.Spec.ProviderID
	if id == "" {
		machine, err := s.machineOf(ctx, name)
		if err != nil {
			return err
		}
		if machine != nil {
			id = machineProviderID(machine) // The Machine API has the ID from the same cloud.
		}
	}
	if id == "" {
		id = ProviderID(s.Platform, name)
	}
	node = node.DeepCopy()
	node.Spec.ProviderID = id
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[corev1.LabelInstanceTypeStable] = instanceTypes[s.Platform]
	if region, zone := parseProviderID(id); zone != "" {
		node.Labels[corev1.LabelTopologyRegion], node.Labels[corev1.LabelTopologyZone] = region, zone
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isUninitialized)
	if _, err := s.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return ignoreGone(err)
	}
	s.log.Info("initialized a node", "node", name, "providerID", id)
	return nil
}

// instanceTypes are the instance type labels by platform. vSphere and Nutanix have no sizes, and their
// controllers report the kind of machine.
var instanceTypes = map[string]string{
	"AWS": "m5a.large", "GCP": "n1-standard-4", "VSphere": "vsphere-vm.cpu-4.mem-16gb.os-windows", "Nutanix": "ahv-vm",
	"Azure": "Standard_D2s_v3",
}

// parseProviderID returns the region and the zone in a provider ID of AWS or GCP: aws:///us-east-1a/i-0123,
// gce://project/us-central1-a/name.
func parseProviderID(providerID string) (region, zone string) {
	if rest, aws := strings.CutPrefix(providerID, "aws:///"); aws {
		zone, _, _ = strings.Cut(rest, "/")
		return strings.TrimRight(zone, "abcdef"), zone
	}
	if rest, gcp := strings.CutPrefix(providerID, "gce://"); gcp {
		_, rest, _ = strings.Cut(rest, "/")
		zone, _, _ = strings.Cut(rest, "/")
		return zone[:max(0, strings.LastIndex(zone, "-"))], zone
	}
	return "", ""
}

func hasCloud(platform string) bool {
	return slices.Contains([]string{"AWS", "Azure", "GCP", "Nutanix", "VSphere"}, platform)
}

// ProviderID returns the provider ID of a virtual machine without a Machine, in the format of the platform.
func ProviderID(platform, name string) string {
	sum := sha256.Sum256([]byte(name))
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	switch platform {
	case "AWS":
		return fmt.Sprintf("aws:///us-east-1a/i-%x", sum[:9])[:len("aws:///us-east-1a/i-")+17]
	case "Azure":
		return "azure:///subscriptions/" + uuid + "/resourceGroups/lab-rg/providers/Microsoft.Compute/virtualMachines/" + name
	case "GCP":
		return "gce://lab-project/us-central1-a/" + name
	case "VSphere":
		return "vsphere://" + uuid
	default:
		return "nutanix://" + uuid
	}
}
