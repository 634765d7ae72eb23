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

// Infrastructure platform types that require platform-specific nodes.
const (
	platformAWS   = "AWS"
	platformAzure = "Azure"
	platformGCP   = "GCP"
)

// validationErrors collects the invalid inputs of a NodeSpec.
type validationErrors []error

func (f *validationErrors) addUnless(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f *validationErrors) addError(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// validate returns an error with all invalid inputs of a NodeSpec. Names and addresses become part of command lines
// and paths, so the form of each value is validated here again, regardless of the source.
func (in Inputs) validate() error {
	var f validationErrors
	f.addUnless(in.Instance.Name != "", "the instance has no name")
	f.addUnless(isNodeName(in.Instance.NodeName), "the node name %q must consist of lower-case letters, digits, '-' and '.'",
		in.Instance.NodeName)
	f.addUnless(isIPv4(in.Instance.NodeIP), "the node's address %q is not an IPv4 address", in.Instance.NodeIP)
	f.addUnless(in.PodSubnet == "" || isIPv4Network(in.PodSubnet), "the pod subnet %q is not an IPv4 network", in.PodSubnet)
	if in.PauseImage != "" {
		f.addError(CheckPauseImage(in.PauseImage))
	}
	_, sized := parseSize(in.LogSettings.FileSize)
	f.addUnless(sized || in.LogSettings.FileSize == "", "the size of log files %q is not a size", in.LogSettings.FileSize)
	version, err := parseKubernetes(in.Kubernetes)
	f.addError(err)
	in.Cluster.validate(&f, version)
	f.addUnless(isDigest(in.Agent.SHA256), "the agent's sha256 %q is not a digest", in.Agent.SHA256)
	for _, component := range in.Payload {
		for _, file := range component.Files {
			f.addUnless(isDigest(file.SHA256), "%s of component %s: sha256 %q is not a digest", file.Name,
				component.Name, file.SHA256)
		}
	}
	if len(f) > 0 {
		return fmt.Errorf("generate the NodeSpec of host %q: %w", in.Instance.Name, errors.Join(f...))
	}
	return nil
}

func (c Cluster) validate(f *validationErrors, kubernetes kubernetesVersion) {
	f.addUnless(strings.HasPrefix(c.APIServerInternalURL, "https://") && isWord(c.APIServerInternalURL),
		"the API server's internal address %q is not an https URL", c.APIServerInternalURL)
	f.addUnless(c.APIServerCA != "", "the API server's certificate authority is not known")
	f.addUnless(c.KubeletClientCA != "", "the certificate authority of the kubelet's clients is not known")
	f.addUnless(len(ipv4Networks(c.ServiceCIDRs)) > 0, "the cluster has no IPv4 service network")
	for _, network := range slices.Concat(c.ServiceCIDRs, c.Network.HybridClusterNetworks) {
		_, err := netip.ParsePrefix(network)
		f.addUnless(err == nil, "the cluster's network %q is not in CIDR notation", network)
	}
	if port := c.Network.VXLANPort; port != nil {
		f.addUnless(*port > 0 && *port < 1<<16, "the hybrid overlay's VXLAN port %d is not a port number", *port)
	}
	f.addUnless(len(c.Kubelet.ClusterDNS) > 0 && c.Kubelet.ClusterDomain != "", "the cluster's DNS is not known")
	f.addUnless(isWord(c.Kubelet.ClusterDomain), "the cluster's domain %q is not a domain name", c.Kubelet.ClusterDomain)
	f.addUnless(isWord(c.Kubelet.CloudProvider), "the kubelets' cloud provider %q is not a valid name", c.Kubelet.CloudProvider)
	_, err := kubeletSettings(c.Kubelet.Settings, kubernetes)
	f.addError(err)
	f.addError(c.Proxy.Validate())
}

// sortComponents returns the components sorted by name, so that the order of the payload has no effect.
func sortComponents(components []Component) []Component {
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

// ipv4Networks returns only the IPv4 networks: pods on Windows nodes have no IPv6.
func ipv4Networks(networks []string) []string {
	return slices.DeleteFunc(slices.Clone(networks), func(network string) bool { return !isIPv4Network(network) })
}

func isDigest(text string) bool {
	data, err := hex.DecodeString(text)
	return err == nil && len(data) == 32 && strings.ToLower(text) == text
}
