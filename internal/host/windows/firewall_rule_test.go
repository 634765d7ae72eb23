package windows

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFirewallRule(t *testing.T) {
	rule := host.FirewallRule{Name: "ContainerLogsPort", DisplayName: "Logs", Protocol: "TCP", LocalPort: 10250,
		Enabled: true, Allow: true}
	blocking := host.FirewallRule{Name: "n", DisplayName: "d", Protocol: "UDP", LocalPort: 65535}
	t.Run("a rule comes back as it was set", func(t *testing.T) {
		for _, want := range []host.FirewallRule{rule, blocking} {
			properties, err := propertiesOf(want)
			if err != nil {
				t.Fatal(err)
			}
			if got, listed := properties.toFirewallRule(); !listed || got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
	t.Run("a rule whose removal was interrupted is listed by its own name", func(t *testing.T) {
		properties, err := propertiesOf(rule)
		if err != nil {
			t.Fatal(err)
		}
		properties.Name = removalName(rule.Name, "{A}")
		if got, listed := properties.toFirewallRule(); !listed || got != rule {
			t.Errorf("got %+v, want %+v", got, rule)
		}
		if removalName(rule.Name, "{A}") == removalName(rule.Name, "{B}") {
			t.Error("the name is not unique")
		}
		for _, other := range []string{rule.Name, "", "a (b)", removalMark + "{A})", rule.Name + removalMark} {
			if got := originalName(other); got != other {
				t.Errorf("the original name of %q is %q", other, got)
			}
		}
	})
	t.Run("a rule is for all profiles or for some, as Windows has it", func(t *testing.T) {
		domainPrivate := host.ProfilesOf(host.ProfilePrivate, host.ProfileDomain)
		for _, c := range []struct {
			bits     int
			profiles host.FirewallProfiles
		}{
			{0x7FFFFFFF, host.AllProfiles}, {1, host.ProfileDomain}, {2, host.ProfilePrivate}, {4, host.ProfilePublic},
			{3, domainPrivate},
		} {
			own := rule
			own.Profiles = c.profiles
			properties, err := propertiesOf(own)
			if err != nil || properties.Profiles != c.bits {
				t.Errorf("%q is set as %#x, error %v", c.profiles, properties.Profiles, err)
			}
			if got, _ := properties.toFirewallRule(); got != own {
				t.Errorf("got %+v, want %+v", got, own)
			}
		}
		if got := decodeProfiles(7); got != host.AllProfiles {
			t.Errorf("all three are %q", got)
		}
	})
	t.Run("what is no rule is refused", func(t *testing.T) {
		for name, change := range map[string]func(*host.FirewallRule){
			"no name":          func(r *host.FirewallRule) { r.Name = "" },
			"no display name":  func(r *host.FirewallRule) { r.DisplayName = "" },
			"the name all":     func(r *host.FirewallRule) { r.Name = "all" },
			"another protocol": func(r *host.FirewallRule) { r.Protocol = "ICMP" },
			"port 0":           func(r *host.FirewallRule) { r.LocalPort = 0 },
			"port 65536":       func(r *host.FirewallRule) { r.LocalPort = 65536 },
			"another profile":  func(r *host.FirewallRule) { r.Profiles = "Home" },
		} {
			broken := rule
			change(&broken)
			if _, err := propertiesOf(broken); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
	t.Run("rules of another kind are not listed", func(t *testing.T) {
		for name, change := range map[string]func(*ruleProperties){
			"outbound":      func(p *ruleProperties) { p.Direction = 2 },
			"any protocol":  func(p *ruleProperties) { p.Protocol = 256 },
			"all ports":     func(p *ruleProperties) { p.LocalPorts = "*" },
			"several ports": func(p *ruleProperties) { p.LocalPorts = "80,443" },
			"a range":       func(p *ruleProperties) { p.LocalPorts = "5000-5010" },
			"RPC":           func(p *ruleProperties) { p.LocalPorts = "RPC" },
			"no port":       func(p *ruleProperties) { p.LocalPorts = "" },
		} {
			other, err := propertiesOf(rule)
			if err != nil {
				t.Fatal(err)
			}
			change(&other)
			if got, listed := other.toFirewallRule(); listed {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}
