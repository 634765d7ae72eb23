package certrequest

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// cloudNames are the naming schemes of a cloud that assigns names and addresses outside the host.
type cloudNames struct {
	// scheme is the prefix of the provider IDs of the cloud's machines.
	scheme string
	// forms match the names. isOwnLabel reports whether the capture group of a match identifies the machine.
	forms      []*regexp.Regexp
	isOwnLabel func(Node, *corev1.Node, string) bool
}

var clouds = map[string]cloudNames{
	// Source: Amazon EC2 user guide, "EC2 instance hostnames and domains".
	"AWS": {"aws://", compilePatterns(
		`(ip-\d+-\d+-\d+-\d+|i-[0-9a-f]+)\.(?:ec2|[a-z0-9-]+\.compute)\.internal`,
		`(ec2-\d+-\d+-\d+-\d+)\.(?:compute-1|[a-z0-9-]+\.compute)\.amazonaws\.com(?:\.cn)?`,
	), isOwnAWSLabel},
	// Source: Compute Engine documentation, "Internal DNS": VM.ZONE.c.PROJECT.internal and VM.c.PROJECT.internal.
	"GCP": {"gce://", compilePatterns(`([a-z0-9-]+)(?:\.[a-z0-9-]+)?\.c\.[a-z0-9.-]+\.internal`), isNodeNameLabel},
	// Source: Azure documentation, "Name resolution for resources in Azure virtual networks", and public IP
	// addresses' DNS name labels.
	"Azure": {"azure://", compilePatterns(`([a-z0-9-]+)\.[a-z0-9.-]+\.cloudapp\.(?:net|azure\.com)`), isNodeNameLabel},
}

func compilePatterns(patterns ...string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, pattern := range patterns {
		compiled = append(compiled, regexp.MustCompile("^"+pattern+"$"))
	}
	return compiled
}

// AddCloudAddresses adds the names and addresses that a cloud's controller writes to the Node and the host cannot
// know: public addresses, and names in the cloud's own domains. The kubelet requests a certificate for these too. The
// function is for nodes without a Machine, which would list the same.
//
// A kubelet may write the status of its Node and, once, the provider ID. Therefore values that could belong to the
// cluster are rejected: addresses of private or cluster networks, and names that do not contain a known identifier of
// the node.
func (n *Node) AddCloudAddresses(node *corev1.Node, cluster nodespec.Cluster) {
	cloud, ok := clouds[cluster.Platform]
	if !ok || !strings.HasPrefix(node.Spec.ProviderID, cloud.scheme) {
		return
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeExternalIP && isPublicAddress(address.Address, cluster) {
			n.Reported.Add(address.Address)
		}
	}
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeExternalDNS && address.Type != corev1.NodeInternalDNS {
			continue
		}
		if cloud.isMachineName(*n, node, strings.ToLower(address.Address)) {
			n.Reported.Add(address.Address)
		}
	}
}

func (c cloudNames) isMachineName(known Node, node *corev1.Node, name string) bool {
	return slices.ContainsFunc(c.forms, func(form *regexp.Regexp) bool {
		parts := form.FindStringSubmatch(name)
		return parts != nil && c.isOwnLabel(known, node, parts[1])
	})
}

// isOwnAWSLabel reports whether the label is the ID of the instance or contains a known address of the node.
func isOwnAWSLabel(known Node, node *corev1.Node, label string) bool {
	if strings.HasPrefix(label, "i-") {
		return strings.HasSuffix(node.Spec.ProviderID, "/"+label)
	}
	_, numbers, _ := strings.Cut(label, "-")
	address, err := netip.ParseAddr(strings.ReplaceAll(numbers, "-", "."))
	return err == nil && known.CanServeAt(address)
}

// isNodeNameLabel reports whether the label is the machine's name in the cloud, which is the node name. The name of a
// legacy node may include the cloud's domain.
func isNodeNameLabel(known Node, _ *corev1.Node, label string) bool {
	own, _, _ := strings.Cut(known.Name, ".")
	return label == own
}

// nonPublicNetworks are non-private networks without public addresses of machines.
var nonPublicNetworks = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
}

// isPublicAddress reports whether an address can be the public address of a machine, and is not used by the cluster.
func isPublicAddress(text string, cluster nodespec.Cluster) bool {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" || address.Is4In6() || address.IsPrivate() ||
		nodename.ReservedAddress(address, &cluster) != "" {
		return false
	}
	return !slices.ContainsFunc(nonPublicNetworks, func(network netip.Prefix) bool { return network.Contains(address) })
}
