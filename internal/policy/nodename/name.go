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

// Platforms whose nodes have the name by which the cloud knows the machine: their cloud controller finds a node's
// machine by it, and takes a Node away for which it finds none. On AWS that is the private DNS name, on GCP the name of
// the instance.
const (
	platformAWS = "AWS"
	platformGCP = "GCP"
)

// GivenByCloud reports whether the nodes of a platform have the names by which the cloud knows their machines, and not
// their host names.
func GivenByCloud(platform string) bool { return platform == platformAWS || platform == platformGCP }

// CloudAnswer is the metadata service's answer to a host, and the facts to judge it by.
type CloudAnswer struct {
	Platform string
	// Name is the answer; Error says why there is none.
	Name, Error string
	// Addresses are the addresses of the host's Machine; none for a host that has no Machine, or whose Machine has none
	// yet.
	Addresses []corev1.NodeAddress
}

// OfCloud returns the node name of a host that the cloud has named. The host itself passes the answer on and could lie;
// Grant decides whether the name is free, or the host's own.
//
// Where the Machine API knows the machine's names, the answer must be one of them. Both have it from the same source:
// the Machine API asks the cloud's API, the host its metadata service. On AWS the Machine's names (InternalDNS and
// Hostname) are the instance's private DNS name and its host part under each domain of the VPC's DHCP options; on GCP
// they are the instance's name, bare and with zone and project. A host with another answer does not belong to the
// Machine, or lies, and gets no certificate. A Machine without such addresses proves nothing either way.
func OfCloud(told CloudAnswer) (name string, decision policy.Decision) {
	name = strings.ToLower(told.Name)
	decision = policy.Decide(told, "The cloud knows the machine as "+name+".", []policy.Check[CloudAnswer]{
		{Name: "CloudNameTold", Reason: v1alpha1.ReasonCloudNameUnknown, Broken: func(c CloudAnswer) string {
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
		{Name: "CloudNameForm", Reason: v1alpha1.ReasonCloudNameUnknown, Broken: cloudNameForm},
		{Name: "CloudNameOfMachine", Reason: v1alpha1.ReasonNameConflict, Broken: otherCloudName},
	})
	if !decision.Allowed {
		return "", decision
	}
	return name, decision
}

// cloudNameForm wants what a Node can be named, and its label kubernetes.io/hostname be.
func cloudNameForm(c CloudAnswer) string {
	name := strings.ToLower(c.Name)
	if len(name) <= validation.LabelValueMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 && !isAddress(name) {
		return ""
	}
	return fmt.Sprintf("The metadata service of %s returned the machine name %.100q, which cannot be a node name: it must be made of "+
		"letters, digits, '-' and '.', with at most %d characters, and be no IP address.", c.Platform, c.Name, validation.LabelValueMaxLength)
}

func otherCloudName(c CloudAnswer) string {
	names := dnsNames(c.Addresses)
	if len(names) == 0 || slices.Contains(names, strings.ToLower(c.Name)) {
		return ""
	}
	return fmt.Sprintf("The host reports the machine name %.100q from the cloud, but the names of its Machine are %q. No certificate is issued for a "+
		"name that is not the Machine's.", c.Name, slices.Compact(names))
}

// Keeps reports whether a host on a platform whose machines the cloud names keeps the node name that it has been
// granted. registered reports whether there is a Node of that name.
//
// A Node keeps its name, whatever the cloud says later: under another name the host would be a second node, and nobody
// would drain the first. It has another name if it was configured before nodes had the cloud's, or if the domain in a
// VPC's DHCP options was changed. And a claim is not given up because the metadata service does not answer.
func Keeps(claimed string, registered bool, told CloudAnswer) bool {
	return registered || told.Error != "" || told.Name == "" || strings.EqualFold(told.Name, claimed)
}
