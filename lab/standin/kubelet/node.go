package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/host"
)

// observation is the state of the machine that the kubelet observes.
type observation struct {
	runtime    host.RuntimeStatus
	runtimeErr error
	network    bool // the pod network is configured
	broken     bool // the kubelet itself is defective
}

// newNode returns the Node object that the kubelet registers.
func (k *kubelet) newNode(seen observation) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        k.config.nodeName,
			Labels:      k.nodeLabels(),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{Taints: k.config.taints, ProviderID: k.config.providerID},
	}
	if k.config.cloudProvider == "external" {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule,
		})
		node.Annotations["alpha.kubernetes.io/provided-node-ip"] = k.config.nodeIP
	}
	node.Status = k.nodeStatus(corev1.NodeStatus{}, seen, k.Clock.Now())
	return node
}

// nodeLabels returns the default labels of a Windows node and the labels of the flags. R-102
func (k *kubelet) nodeLabels() map[string]string {
	labels := map[string]string{
		corev1.LabelHostname:      strings.ToLower(k.system.HostName),
		corev1.LabelOSStable:      "windows",
		corev1.LabelArchStable:    k.system.Architecture,
		"beta.kubernetes.io/os":   "windows",
		"beta.kubernetes.io/arch": k.system.Architecture,
		corev1.LabelWindowsBuild:  k.system.Version,
	}
	if k.config.hostname != "" {
		labels[corev1.LabelHostname] = k.config.nodeName
	}
	maps.Copy(labels, k.config.labels)
	return labels
}

// nodeStatus returns the node's status for an observation. Unchanged parts of the previous status are kept.
func (k *kubelet) nodeStatus(before corev1.NodeStatus, seen observation, now time.Time) corev1.NodeStatus {
	status := *before.DeepCopy()
	if err := k.checkNodeIP(); err != nil {
		k.errorf("Failed to set some node status fields: %v", err) // the addresses stay unchanged
	} else {
		status.Addresses = k.nodeAddresses()
	}
	status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           *resource.NewQuantity(k.system.MemoryBytes, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(127<<30, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(k.config.maxPods, resource.DecimalSI),
	}
	status.Allocatable = status.Capacity.DeepCopy()
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(k.config.port)
	status.NodeInfo.MachineID = k.system.HostName
	status.NodeInfo.SystemUUID = k.system.MachineID
	status.NodeInfo.BootID = k.system.BootID
	status.NodeInfo.KernelVersion = fmt.Sprintf("%s.%d", k.system.Version, k.system.Revision)
	status.NodeInfo.OSImage = k.system.Product
	status.NodeInfo.OperatingSystem = "windows"
	status.NodeInfo.Architecture = k.system.Architecture
	status.NodeInfo.KubeletVersion = k.Version
	if seen.runtimeErr == nil {
		status.NodeInfo.ContainerRuntimeVersion = seen.runtime.Name + "://" + strings.TrimPrefix(seen.runtime.Version, "v")
	}
	status.Conditions = nodeConditions(before.Conditions, seen, metav1.NewTime(now))
	return status
}

// checkNodeIP refuses an address that the machine does not have.
// Source: k8s.io/kubernetes, pkg/kubelet/kubelet_node_status.go, setNodeStatus and validateNodeIP;
// pkg/kubelet/nodestatus/setters.go, NodeAddress.
func (k *kubelet) checkNodeIP() error {
	if ip := k.config.nodeIP; ip != "" && !slices.Contains(k.Process.Machine.Addresses(), ip) {
		return fmt.Errorf("failed to validate nodeIP: node IP: %q not found in the host's network interfaces", ip)
	}
	return nil
}

func (k *kubelet) nodeAddresses() []corev1.NodeAddress {
	var addresses []corev1.NodeAddress
	if k.config.nodeIP != "" {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: k.config.nodeIP})
	}
	return append(addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: k.nodeLabels()[corev1.LabelHostname]})
}

// nodeConditions returns conditions with the reasons and messages of the real kubelet. Conditions of other writers
// are kept.
func nodeConditions(before []corev1.NodeCondition, seen observation, now metav1.Time) []corev1.NodeCondition {
	after := slices.Clone(before)
	for _, condition := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
			Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
			Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
			Message: "kubelet has sufficient PID available"},
		readyCondition(seen),
	} {
		condition.LastHeartbeatTime, condition.LastTransitionTime = now, now
		i := slices.IndexFunc(after, func(c corev1.NodeCondition) bool { return c.Type == condition.Type })
		if i < 0 {
			after = append(after, condition)
			continue
		}
		if after[i].Status == condition.Status {
			condition.LastTransitionTime = after[i].LastTransitionTime
		}
		after[i] = condition
	}
	return after
}

func readyCondition(seen observation) corev1.NodeCondition {
	var faults []string
	if seen.runtimeErr != nil || !seen.runtime.Ready {
		faults = append(faults, "container runtime is down")
	}
	if !seen.network {
		faults = append(faults, "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "+
			"message:Network plugin returns error: cni plugin not initialized")
	}
	if seen.broken {
		faults = append(faults, "PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s")
	}
	if len(faults) > 0 {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
			Message: "[" + strings.Join(faults, ", ") + "]"}
	}
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status"}
}

// hasStatusChanged reports whether two statuses differ in more than the heartbeat.
func hasStatusChanged(before, after corev1.NodeStatus) bool {
	if before.NodeInfo != after.NodeInfo || len(before.Conditions) != len(after.Conditions) ||
		len(before.Addresses) != len(after.Addresses) {
		return true
	}
	for i, c := range after.Conditions {
		old := before.Conditions[i]
		if old.Type != c.Type || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			return true
		}
	}
	for i, a := range after.Addresses {
		if before.Addresses[i] != a {
			return true
		}
	}
	return false
}
