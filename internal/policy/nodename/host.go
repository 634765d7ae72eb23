package nodename

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// platformVSphere is the platform with a cloud controller that finds a node's virtual machine by the DNS name that
// the guest reports: the host name, with the primary DNS suffix if the host has a suffix. A node under another name
// is never initialized, and accepts no pods. Source: kubernetes/cloud-provider-vsphere,
// pkg/cloudprovider/vsphere/instances.go, InstanceID, and pkg/common/connectionmanager/search.go.
const platformVSphere = "VSphere"

// HasGuestNameLookup reports whether the cloud controller of a platform finds a node's virtual machine by the DNS name
// of the guest. That comparison is case-sensitive, so the host name must be in lower case like node names.
func HasGuestNameLookup(platform string) bool { return platform == platformVSphere }

// OfHost returns the name of a new node on a platform that does not name nodes: the host name in lower case, which
// must be an RFC 1123 label; on vSphere with the domain, which is the primary DNS suffix.
func OfHost(platform, hostName, domain string) (string, error) {
	name := strings.ToLower(hostName)
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("the host name %q cannot be a node name: it must be an RFC 1123 label, that is letters, digits or '-', "+
			"with a letter or digit first and last, at most 63 characters", hostName)
	}
	domain = strings.Trim(domain, ".")
	if !HasGuestNameLookup(platform) || domain == "" {
		return name, nil
	}
	full := name + "." + strings.ToLower(domain)
	if problems := validation.IsDNS1123Subdomain(full); len(problems) > 0 || isAddress(full) {
		return "", fmt.Errorf("the host's full DNS name %.300q cannot be a node name: on vSphere the node has this name; each part of it must be "+
			"an RFC 1123 label, and it must not be an IP address", hostName+"."+domain)
	}
	// The kubelet sets the label kubernetes.io/hostname of its Node to the node name, and the API server refuses the
	// Node if the value is longer. Without the domain, the Node would be registered but never initialized.
	if len(full) > validation.LabelValueMaxLength {
		return "", fmt.Errorf("the host's full DNS name %.300q has %d characters: on vSphere the node has this name, and a node name may have %d characters at most",
			hostName+"."+domain, len(full), validation.LabelValueMaxLength)
	}
	return full, nil
}

// isAddress reports whether a name is an IP address: a host named like another host's address would get a certificate
// for that address.
func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}
