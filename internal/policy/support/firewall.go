package support

import (
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// FirewallRemedy describes the rules that an administrator adds to the group policy.
const FirewallRemedy = "Add inbound rules for all profiles to that policy: TCP 22 for the operator, TCP 9182, 10250 and 10256 for the cluster. " +
	"Or let the policy apply local firewall rules. On the host, gpupdate applies a changed policy."

// SupportFirewall decides whether a host with its group policy for the firewall may become a node. The creation of
// the pod network can move the host's adapter to another profile.
func SupportFirewall(system host.SystemInfo) policy.Decision {
	var blocked []string
	for _, profile := range host.Profiles() {
		if slices.Contains(system.SSHBlocked, profile) {
			blocked = append(blocked, string(profile))
		}
	}
	if len(blocked) == 0 {
		return policy.Decision{Allowed: true}
	}
	return policy.Decision{
		Check: "FirewallPolicyUnsupported", Reason: v1alpha1.ReasonFirewallPolicyUnsupported,
		Message: fmt.Sprintf("A group policy excludes local firewall rules on the host and has no rule for SSH in the profile %s: "+
			"the operator could lose its connection when the pod network is created.", policy.Enumerate(blocked)),
	}
}
