package windows

import (
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// sshPort is the port that the operator requires in the rules of a group policy.
const sshPort = "22"

// profilePolicy is the configuration of Windows Firewall for one profile.
type profilePolicy struct {
	merges  bool // rules of the machine apply in addition to the rules of the group policy
	filters bool // inbound connections need a rule
}

// sshBlockedProfiles returns the profiles that block SSH: only rules of the group policy apply, and no rule allows
// SSH.
func sshBlockedProfiles(policies map[host.FirewallProfiles]profilePolicy, rules []string) []host.FirewallProfiles {
	var blocked []host.FirewallProfiles
	for _, profile := range host.Profiles() {
		policy := policies[profile]
		allowed := func(rule string) bool { return isSSHAllowed(rule, profile) }
		if !policy.merges && policy.filters && !slices.ContainsFunc(rules, allowed) {
			blocked = append(blocked, profile)
		}
	}
	return blocked
}

// isSSHAllowed reports whether a rule of a group policy allows SSH in a profile. The rule has the format of [MS-GPFAS]
// 2.2.2.19: v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|Profile=Domain|LPort=22|Name=SSH|. A missing field
// matches everything, and a repeated field is a list. Rules for specific addresses or interfaces also count, because
// the agent does not know the operator's address.
func isSSHAllowed(rule string, profile host.FirewallProfiles) bool {
	fields := map[string][]string{}
	for field := range strings.SplitSeq(rule, "|") {
		if name, value, found := strings.Cut(field, "="); found {
			fields[name] = append(fields[name], value)
		}
	}
	has := func(name, value string) bool {
		return slices.ContainsFunc(fields[name], func(each string) bool { return strings.EqualFold(each, value) })
	}
	matches := func(name, value string) bool { return fields[name] == nil || has(name, value) }
	program := fields["App"] == nil || slices.ContainsFunc(fields["App"], func(path string) bool {
		return strings.HasSuffix(strings.ToLower(path), `\sshd.exe`)
	})
	ports := fields["LPort"] == nil && fields["LPort2_10"] == nil || has("LPort", sshPort) ||
		slices.ContainsFunc(fields["LPort2_10"], hasSSHPort)
	return has("Action", "Allow") && has("Active", "TRUE") && has("Dir", "In") && matches("Protocol", "6") && ports &&
		matches("Profile", string(profile)) && matches("Svc", "sshd") && program && fields["Security"] == nil
}

// hasSSHPort reports whether a range of ports, such as 20-25, includes the SSH port.
func hasSSHPort(ports string) bool {
	low, high, isRange := strings.Cut(ports, "-")
	port, portErr := strconv.Atoi(sshPort)
	first, firstErr := strconv.Atoi(low)
	last, lastErr := strconv.Atoi(high)
	return isRange && portErr == nil && firstErr == nil && lastErr == nil && first <= port && port <= last
}
