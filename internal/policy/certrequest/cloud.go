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

// cloudNames are how a cloud that gives machines addresses from outside of the host calls them.
type cloudNames struct {
	// scheme begins the provider ID of its machines.
	scheme string
	// forms are the forms of the names. The group of each must match the machine's own part; own reports whether it does.
	forms []*regexp.Regexp
	own   func(Node, *corev1.Node, string) bool
}

var clouds = map[string]cloudNames{
	// Source: Amazon EC2 user guide, "EC2 instance hostnames and domains".
	"AWS": {"aws://", forms(
		`(ip-\d+-\d+-\d+-\d+|i-[0-9a-f]+)\.(?:ec2|[a-z0-9-]+\.compute)\.internal`,
		`(ec2-\d+-\d+-\d+-\d+)\.(?:compute-1|[a-z0-9-]+\.compute)\.amazonaws\.com(?:\.cn)?`,
	), ownOnAWS},
	// Source: Compute Engine documentation, "Internal DNS": VM.ZONE.c.PROJECT.internal and VM.c.PROJECT.internal.
	"GCP": {"gce://", forms(`([a-z0-9-]+)(?:\.[a-z0-9-]+)?\.c\.[a-z0-9.-]+\.internal`), ownByNodeName},
	// Source: Azure documentation, "Name resolution for resources in Azure virtual networks", and public IP addresses' DNS
	// name labels.
	"Azure": {"azure://", forms(`([a-z0-9-]+)\.[a-z0-9.-]+\.cloudapp\.(?:net|azure\.com)`), ownByNodeName},
}

func forms(patterns ...string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, pattern := range patterns {
		compiled = append(compiled, regexp.MustCompile("^"+pattern+"$"))
	}
	return compiled
}

// AddCloudAddresses adds the names and addresses that a cloud's controller writes on the Node and the host cannot know:
// public addresses, and names in the cloud's own domains. The kubelet requests a certificate with them. It is for nodes
// without a Machine that lists the same.
//
// A kubelet may write the status of its Node and, once, its provider ID. So nothing is taken from there that could be
// part of the cluster: no address of a private network or of one of the cluster's, and no name that is not made of what
// the node is known by.
func (n *Node) AddCloudAddresses(node *corev1.Node, cluster nodespec.Cluster) {
	cloud, ok := clouds[cluster.Platform]
	if !ok || !strings.HasPrefix(node.Spec.ProviderID, cloud.scheme) {
		return
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeExternalIP && publicAddress(address.Address, cluster) {
			n.Told.Add(address.Address)
		}
	}
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeExternalDNS && address.Type != corev1.NodeInternalDNS {
			continue
		}
		if cloud.names(*n, node, strings.ToLower(address.Address)) {
			n.Told.Add(address.Address)
		}
	}
}

func (c cloudNames) names(known Node, node *corev1.Node, name string) bool {
	return slices.ContainsFunc(c.forms, func(form *regexp.Regexp) bool {
		parts := form.FindStringSubmatch(name)
		return parts != nil && c.own(known, node, parts[1])
	})
}

// ownOnAWS wants the instance's ID or one of its addresses.
func ownOnAWS(known Node, node *corev1.Node, label string) bool {
	if strings.HasPrefix(label, "i-") {
		return strings.HasSuffix(node.Spec.ProviderID, "/"+label)
	}
	_, numbers, _ := strings.Cut(label, "-")
	address, err := netip.ParseAddr(strings.ReplaceAll(numbers, "-", "."))
	return err == nil && known.MayServeAt(address)
}

// ownByNodeName wants the name by which the cloud knows the machine, which is the node's. A Node of an operator before
// version 12 may have it with the cloud's domain.
func ownByNodeName(known Node, _ *corev1.Node, label string) bool {
	own, _, _ := strings.Cut(known.Name, ".")
	return label == own
}

// neverPublic are networks besides the private ones that no machine has a public address from.
var neverPublic = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
}

// publicAddress reports whether an address can be a machine's in the internet, and none of the cluster's.
func publicAddress(text string, cluster nodespec.Cluster) bool {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" || address.Is4In6() || address.IsPrivate() ||
		nodename.ReservedAddress(address, &cluster) != "" {
		return false
	}
	return !slices.ContainsFunc(neverPublic, func(network netip.Prefix) bool { return network.Contains(address) })
}
