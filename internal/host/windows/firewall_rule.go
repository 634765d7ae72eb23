package windows

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Values of INetFwRule properties (icftypes.h, netfw.h).
const (
	firewallTCP         = 6          // NET_FW_IP_PROTOCOL_TCP
	firewallUDP         = 17         // NET_FW_IP_PROTOCOL_UDP
	firewallInbound     = 1          // NET_FW_RULE_DIR_IN
	firewallBlock       = 0          // NET_FW_ACTION_BLOCK
	firewallAllow       = 1          // NET_FW_ACTION_ALLOW
	firewallDomain      = 1          // NET_FW_PROFILE2_DOMAIN
	firewallPrivate     = 2          // NET_FW_PROFILE2_PRIVATE
	firewallPublic      = 4          // NET_FW_PROFILE2_PUBLIC
	firewallAllProfiles = 0x7FFFFFFF // NET_FW_PROFILE2_ALL
)

// ruleProperties contains the INetFwRule properties of a host.FirewallRule. The name of INetFwRule is the name of
// the rule. The display name is stored in the description, because COM does not expose the second name of a rule,
// which PowerShell uses.
type ruleProperties struct {
	Name        string
	Description string
	Protocol    int
	LocalPorts  string
	Direction   int
	Enabled     bool
	Action      int
	Profiles    int // bits
}

// toFirewallRule returns the host.FirewallRule, and false for unlisted rules: outbound rules, and rules for anything
// but exactly one TCP or UDP port.
func (p ruleProperties) toFirewallRule() (host.FirewallRule, bool) {
	port, err := strconv.Atoi(p.LocalPorts)
	protocol := map[int]string{firewallTCP: "TCP", firewallUDP: "UDP"}[p.Protocol]
	if err != nil || protocol == "" || p.Direction != firewallInbound || port < 1 || port > 65535 {
		return host.FirewallRule{}, false
	}
	return host.FirewallRule{
		Name: originalName(p.Name), DisplayName: p.Description, Protocol: protocol, LocalPort: port,
		Enabled: p.Enabled, Allow: p.Action == firewallAllow, Profiles: decodeProfiles(p.Profiles),
	}, true
}

// removalMark separates the original name of a rule from a unique identifier while the rule is being removed. If the
// agent is killed in between, the rule stays active under the combined name. The rule is listed under the original
// name, so that the next removal finds the rule.
const removalMark = " (being removed by the windows-instance-config-daemon, "

// removalName returns the unique name of a rule during its removal.
func removalName(name, unique string) string { return name + removalMark + unique + ")" }

// originalName returns the name of a rule before its removal began.
func originalName(name string) string {
	original, rest, found := strings.Cut(name, removalMark)
	if !found || original == "" || !strings.HasSuffix(rest, ")") {
		return name
	}
	return original
}

// propertiesOf returns the properties of a rule, or an error if the rule is invalid.
func propertiesOf(rule host.FirewallRule) (ruleProperties, error) {
	p := ruleProperties{
		Name: rule.Name, Description: rule.DisplayName, LocalPorts: strconv.Itoa(rule.LocalPort),
		Direction: firewallInbound, Enabled: rule.Enabled, Action: firewallBlock, Profiles: encodeProfiles(rule.Profiles),
	}
	if rule.Allow {
		p.Action = firewallAllow
	}
	switch rule.Protocol {
	case "TCP":
		p.Protocol = firewallTCP
	case "UDP":
		p.Protocol = firewallUDP
	default:
		return p, fmt.Errorf("protocol %q is neither TCP nor UDP", rule.Protocol)
	}
	switch {
	case rule.Name == "" || rule.DisplayName == "":
		return p, fmt.Errorf("a firewall rule needs a name and a display name")
	case rule.Name == "all":
		return p, fmt.Errorf("the name %q is reserved for Windows", rule.Name)
	case !rule.Profiles.IsValid():
		return p, fmt.Errorf("profiles %q are not valid", rule.Profiles)
	case rule.LocalPort < 1 || rule.LocalPort > 65535:
		return p, fmt.Errorf("port %d is not valid", rule.LocalPort)
	}
	return p, nil
}

// profileBits are the bits of INetFwRule.Profiles.
var profileBits = []struct {
	bit  int
	kind host.FirewallProfiles
}{
	{firewallDomain, host.ProfileDomain}, {firewallPrivate, host.ProfilePrivate}, {firewallPublic, host.ProfilePublic},
}

func decodeProfiles(bits int) host.FirewallProfiles {
	var kinds []host.FirewallProfiles
	for _, each := range profileBits {
		if bits&each.bit != 0 {
			kinds = append(kinds, each.kind)
		}
	}
	if len(kinds) == 0 {
		return host.AllProfiles // Windows never returns 0
	}
	return host.ProfilesOf(kinds...)
}

func encodeProfiles(profiles host.FirewallProfiles) int {
	if profiles == host.AllProfiles {
		return firewallAllProfiles
	}
	bits := 0
	for _, each := range profileBits {
		if profiles.Has(each.kind) {
			bits |= each.bit
		}
	}
	return bits
}
