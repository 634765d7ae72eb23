//go:build windows

// The group policy of the firewall is read from the registry, because no Windows function returns it for inactive
// profiles. [MS-GPFAS] 2.2.2 and 2.2.3 list the keys and values.

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	groupPolicyKey = `SOFTWARE\Policies\Microsoft\WindowsFirewall`
	localPolicyKey = `SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy`
)

// profileKeys contains the names of each profile's keys below the group policy key and the machine key.
var profileKeys = map[host.FirewallProfiles]struct{ group, local string }{
	host.ProfileDomain:  {"DomainProfile", "DomainProfile"},
	host.ProfilePrivate: {"PrivateProfile", "StandardProfile"},
	host.ProfilePublic:  {"PublicProfile", "PublicProfile"},
}

// readFirewallPolicy determines the profiles that block SSH by group policy.
func readFirewallPolicy(info *host.SystemInfo) error {
	policies := map[host.FirewallProfiles]profilePolicy{}
	for profile, keys := range profileKeys {
		group, local := groupPolicyKey+`\`+keys.group, localPolicyKey+`\`+keys.local
		merges, err := readPolicy("AllowLocalPolicyMerge", group)
		if err != nil {
			return err
		}
		enabled, err := readPolicy("EnableFirewall", group, local)
		if err != nil {
			return err
		}
		blocks, err := readPolicy("DefaultInboundAction", group, local)
		if err != nil {
			return err
		}
		policies[profile] = profilePolicy{merges: merges, filters: enabled && blocks}
	}
	rules, err := readPolicyRules()
	info.SSHBlocked = sshBlockedProfiles(policies, rules)
	return err
}

// readPolicy reads a number from the first key that contains it. The default of all numbers is 1. A value of another
// type counts as missing.
func readPolicy(name string, keys ...string) (bool, error) {
	for _, path := range keys {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
		if errors.Is(err, registry.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("open the registry key %s: %w", path, err)
		}
		value, _, err := key.GetIntegerValue(name)
		_ = key.Close()
		switch {
		case err == nil:
			return value != 0, nil
		case !errors.Is(err, registry.ErrNotExist) && !errors.Is(err, registry.ErrUnexpectedType):
			return false, fmt.Errorf(`read the registry value %s\%s: %w`, path, name, err)
		}
	}
	return true, nil
}

// readPolicyRules returns the rules of the group policy.
func readPolicyRules() ([]string, error) {
	const path = groupPolicyKey + `\FirewallRules`
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if errors.Is(err, registry.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the registry key %s: %w", path, err)
	}
	defer func() { _ = key.Close() }()
	names, err := key.ReadValueNames(0)
	if err != nil {
		return nil, fmt.Errorf("list the values of the registry key %s: %w", path, err)
	}
	var rules []string
	for _, name := range names {
		rule, _, err := key.GetStringValue(name)
		if err != nil && !errors.Is(err, registry.ErrNotExist) && !errors.Is(err, registry.ErrUnexpectedType) {
			return nil, fmt.Errorf(`read the registry value %s\%s: %w`, path, name, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
