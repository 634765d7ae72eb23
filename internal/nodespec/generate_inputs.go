package nodespec

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// platformAzure is the Infrastructure platform type whose nodes run cloud-node-manager.
const platformAzure = "Azure"

// validate reports everything that a NodeSpec cannot be made from. Names and addresses end in command lines and paths, so their form
// is checked here again, whoever gave them.
func (in Inputs) validate() error {
	var faults []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	need(in.Instance.Name != "", "the instance has no name")
	need(isNodeName(in.Instance.NodeName), "the node name %q is not made of lower-case letters, digits, '-' and '.'", in.Instance.NodeName)
	need(isIPv4(in.Instance.NodeIP), "the node's address %q is not an IPv4 address", in.Instance.NodeIP)
	need(in.PodSubnet == "" || isIPv4Network(in.PodSubnet), "the pod subnet %q is not an IPv4 network", in.PodSubnet)
	need(strings.HasPrefix(in.Cluster.APIServerInternalURL, "https://"), "the API server's internal address %q is not https", in.Cluster.APIServerInternalURL)
	need(in.Cluster.APIServerCA != "", "the API server's certificate authority is not known")
	need(in.Cluster.KubeletClientCA != "", "the certificate authority of the kubelet's clients is not known")
	need(len(ipv4Networks(in.Cluster.ServiceCIDRs)) > 0, "the cluster has no IPv4 service network")
	need(len(in.Cluster.Kubelet.ClusterDNS) > 0 && in.Cluster.Kubelet.ClusterDomain != "", "the cluster's DNS is not known")
	need(isDigest(in.Agent.SHA256), "the agent's sha256 %q is no digest", in.Agent.SHA256)
	for _, component := range in.Payload {
		for _, file := range component.Files {
			need(isDigest(file.SHA256), "%s of component %s: sha256 %q is no digest", file.Name, component.Name, file.SHA256)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("make the NodeSpec of host %q: %w", in.Instance.Name, errors.Join(faults...))
	}
	return nil
}

// byName are the components in the order of their names, so that the order of the payload makes no difference.
func byName(components []Component) []Component {
	sorted := slices.Clone(components)
	slices.SortFunc(sorted, func(a, b Component) int { return cmp.Compare(a.Name, b.Name) })
	return sorted
}

func isNodeName(name string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' }
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, other)
}

func isIPv4(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is4()
}

func isIPv4Network(text string) bool {
	prefix, err := netip.ParsePrefix(text)
	return err == nil && prefix.Addr().Is4()
}

// ipv4Networks leaves out what Windows nodes cannot have: pods on them have no IPv6.
func ipv4Networks(networks []string) []string {
	return slices.DeleteFunc(slices.Clone(networks), func(network string) bool { return !isIPv4Network(network) })
}

func isDigest(text string) bool {
	data, err := hex.DecodeString(text)
	return err == nil && len(data) == 32 && strings.ToLower(text) == text
}
