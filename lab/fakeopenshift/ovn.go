package fakeopenshift

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const subnetAnnotation = "k8s.ovn.org/hybrid-overlay-node-subnet"

var networkResource = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "networks"}

// assignSubnet assigns the pod subnet to a Windows node, as the hybrid overlay of OVN-Kubernetes does. (On the
// node, hybrid-overlay-node responds with the address of its gateway.) R-122
func (s *simulator) assignSubnet(ctx context.Context, name string) error {
	node, err := s.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if node.Labels[corev1.LabelOSStable] != "windows" || node.Annotations[subnetAnnotation] != "" {
		return nil
	}
	cidr, prefix, err := s.hybridNetwork(ctx)
	if err != nil {
		return err
	}
	subnet, err := s.subnets.allocateSubnet(node, s.windowsNodes, cidr, prefix)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, node.UID, subnetAnnotation, subnet)
	_, err = s.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The node was recreated and causes its own event.
	}
	if err == nil {
		s.log.Info("assigned a pod subnet", "node", name, "subnet", subnet.String())
	}
	return err
}

// hybridNetwork returns the network of the pod subnets of Windows nodes.
func (s *simulator) hybridNetwork(ctx context.Context) (netip.Prefix, int, error) {
	network, err := s.dynamic.Resource(networkResource).Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return netip.Prefix{}, 0, fmt.Errorf("read the cluster's network: %w", err)
	}
	entries, _, err := unstructured.NestedSlice(network.Object, "spec", "defaultNetwork", "ovnKubernetesConfig",
		"hybridOverlayConfig", "hybridClusterNetwork")
	if err != nil {
		return netip.Prefix{}, 0, fmt.Errorf("read the cluster's network: %w", err)
	}
	if len(entries) == 0 {
		return netip.Prefix{}, 0, errors.New("the cluster's network has no hybrid overlay: Windows nodes get no pod subnet")
	}
	entry, _ := entries[0].(map[string]any)
	text, _ := entry["cidr"].(string)
	length, _ := entry["hostPrefix"].(int64)
	cidr, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, 0, fmt.Errorf("hybridClusterNetwork: %w", err)
	}
	if !cidr.Addr().Is4() || int(length) < cidr.Bits() || length > 30 {
		return netip.Prefix{}, 0, fmt.Errorf("hybridClusterNetwork %s cannot be cut into subnets with hostPrefix %d", cidr,
			length)
	}
	return cidr.Masked(), int(length), nil
}

// currentSubnet returns the current subnet of a node.
func currentSubnet(nodes []*corev1.Node, uid types.UID) (netip.Prefix, bool) {
	for _, n := range nodes {
		if n.UID == uid {
			subnet, err := netip.ParsePrefix(n.Annotations[subnetAnnotation])
			return subnet, err == nil
		}
	}
	return netip.Prefix{}, false
}

// allocator allocates subnets. It remembers allocations that the cache of nodes does not contain yet.
type allocator struct {
	mu        sync.Mutex
	allocated map[types.UID]netip.Prefix
}

// allocateSubnet returns the lowest free subnet.
func (a *allocator) allocateSubnet(node *corev1.Node, list func() ([]*corev1.Node, error), cidr netip.Prefix,
	length int) (netip.Prefix, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	nodes, err := list() // current list: another worker may have allocated subnets meanwhile
	if err != nil {
		return netip.Prefix{}, err
	}
	if subnet, ok := a.allocated[node.UID]; ok {
		return subnet, nil
	}
	if subnet, ok := currentSubnet(nodes, node.UID); ok {
		return subnet, nil
	}
	allocated, alive := map[netip.Prefix]bool{}, map[types.UID]netip.Prefix{}
	for _, n := range nodes {
		if subnet, err := netip.ParsePrefix(n.Annotations[subnetAnnotation]); err == nil {
			allocated[subnet.Masked()] = true
		} else if subnet, ok := a.allocated[n.UID]; ok {
			allocated[subnet], alive[n.UID] = true, subnet
		}
	}
	a.allocated = alive
	for n := range 1 << (length - cidr.Bits()) {
		base := cidr.Addr().As4()
		offset := uint32(n) << (32 - length)
		for i := range 4 {
			base[i] |= byte(offset >> (24 - 8*i))
		}
		subnet := netip.PrefixFrom(netip.AddrFrom4(base), length)
		if !allocated[subnet] {
			a.allocated[node.UID] = subnet
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("all subnets of %s are taken: node %s gets none", cidr, node.Name)
}
