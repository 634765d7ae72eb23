package nodename

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Platforms where node names are the machine names of the cloud: the cloud controller finds a node's machine by the
// name, and deletes a Node without a machine. On AWS this is the private DNS name, on GCP the name of the instance.
const (
	platformAWS = "AWS"
	platformGCP = "GCP"
)

// IsNamedByCloud reports whether the nodes of a platform have the machine names of the cloud instead of their host
// names.
func IsNamedByCloud(platform string) bool { return platform == platformAWS || platform == platformGCP }

// CloudAnswer is the response of the metadata service to a host, with the facts for judging the response.
type CloudAnswer struct {
	Platform string
	// Name is the response; Error is the reason for a missing response.
	Name, Error string
	// Addresses are the addresses of the host's Machine; empty if there is no Machine, or the Machine has no
	// addresses yet.
	Addresses []corev1.NodeAddress
}

// OfCloud returns the node name of a host that the cloud has named. The host itself forwards the response and could
// lie; Grant decides whether the name is free, or the host's own.
//
// If the Machine API knows the machine's names, the response must be among these names. Both have the same source:
// the Machine API queries the cloud's API, and the host queries the metadata service. On AWS the Machine's names
// (InternalDNS and Hostname) are the instance's private DNS name and its host part under each domain of the VPC's
// DHCP options; on GCP the names are the instance's name, bare and with zone and project. A host with a different
// response does not belong to the Machine, or lies, and gets no certificate. A Machine without such addresses proves
// nothing.
func OfCloud(told CloudAnswer) (name string, decision policy.Decision) {
	name = strings.ToLower(told.Name)
	decision = policy.Decide(told, "The cloud knows the machine as "+name+".", []policy.Check[CloudAnswer]{
		{Name: "CloudNameMissing", Reason: v1alpha1.ReasonCloudNameUnknown, Violation: func(c CloudAnswer) string {
			switch {
			case c.Error != "":
				return fmt.Sprintf("The metadata service of %s did not return the machine name, which is used as the node name: %s.",
					c.Platform, strings.TrimSuffix(c.Error, "."))
			case c.Name == "":
				return fmt.Sprintf("The metadata service of %s was not queried for the machine name, which is used as the node name.",
					c.Platform)
			}
			return ""
		}},
		{Name: "CloudNameInvalid", Reason: v1alpha1.ReasonCloudNameUnknown, Violation: invalidCloudName},
		{Name: "CloudNameMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: cloudNameMismatch},
	})
	if !decision.Allowed {
		return "", decision
	}
	return name, decision
}

// invalidCloudName checks that the name is a valid name for a Node and a valid value of the label
// kubernetes.io/hostname.
func invalidCloudName(c CloudAnswer) string {
	name := strings.ToLower(c.Name)
	if len(name) <= validation.LabelValueMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 && !isAddress(name) {
		return ""
	}
	return fmt.Sprintf("The metadata service of %s returned the machine name %.100q, which cannot be a node name: it must consist of "+
		"letters, digits, '-' and '.', with at most %d characters, and must not be an IP address.", c.Platform, c.Name, validation.LabelValueMaxLength)
}

func cloudNameMismatch(c CloudAnswer) string {
	names := dnsNames(c.Addresses)
	if len(names) == 0 || slices.Contains(names, strings.ToLower(c.Name)) {
		return ""
	}
	return fmt.Sprintf("The host reports the machine name %.100q from the cloud, but the names of its Machine are %q. No certificate is issued for a "+
		"name that does not belong to the Machine.", c.Name, slices.Compact(names))
}

// ShouldKeepName reports whether a host keeps its granted node name on a platform where the cloud names the machines.
// registered reports whether a Node of that name exists.
//
// A Node keeps its name regardless of later responses of the cloud: under another name the host would be a second
// node, and the first node would never be drained. The names differ if the node was configured before nodes had the
// cloud's names, or if the domain in a VPC's DHCP options changed. A claim is also kept if the metadata service does
// not respond.
func ShouldKeepName(claimed string, registered bool, told CloudAnswer) bool {
	return registered || told.Error != "" || told.Name == "" || strings.EqualFold(told.Name, claimed)
}
