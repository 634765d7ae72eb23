package support

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
)

func TestSupportFirewall(t *testing.T) {
	for name, c := range map[string]struct {
		blocked []host.FirewallProfiles
		message string // empty: allowed
	}{
		"a host without such a policy can be a node":                 {},
		"one profile without SSH is enough to refuse a host":         {[]host.FirewallProfiles{host.ProfilePublic}, "in the profile Public:"},
		"all profiles without SSH are named":                         {host.Profiles(), "in the profile Domain, Private and Public:"},
		"a profile that Windows does not have is no reason, or text": {[]host.FirewallProfiles{"\x1b[2J"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			decision := SupportFirewall(host.SystemInfo{SSHBlocked: c.blocked})
			if decision.Allowed != (c.message == "") || !strings.Contains(decision.Message, c.message) {
				t.Errorf("%+v", decision)
			}
			if !decision.Allowed && decision.Reason != v1alpha1.ReasonFirewallPolicyUnsupported {
				t.Errorf("the reason is %s", decision.Reason)
			}
		})
	}
}
