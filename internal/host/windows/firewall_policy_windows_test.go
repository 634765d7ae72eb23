//go:build windows

package windows

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// The keys are repeated here as documented in [MS-GPFAS].
func TestSystemInfo_ReadsFirewallGroupPolicy(t *testing.T) {
	const policy = `SOFTWARE\Policies\Microsoft\WindowsFirewall`
	keys := []string{policy + `\DomainProfile`, policy + `\PrivateProfile`, policy + `\PublicProfile`, policy + `\FirewallRules`}
	t.Cleanup(func() {
		for _, key := range append(keys, policy) {
			if err := registry.DeleteKey(registry.LOCAL_MACHINE, key); err != nil && !errors.Is(err, registry.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	open := func(path string) registry.Key {
		key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, path, registry.SET_VALUE|registry.WOW64_64KEY)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = key.Close() })
		return key
	}
	expect := func(want ...host.FirewallProfiles) {
		t.Helper()
		info, err := (system{}).Info(t.Context())
		if err != nil || !slices.Equal(info.SSHBlocked, want) {
			t.Errorf("SSH is blocked in %v, want %v: %v", info.SSHBlocked, want, err)
		}
	}
	expect()
	for _, key := range keys[:3] {
		if err := open(key).SetStringValue("AllowLocalPolicyMerge", "0"); err != nil {
			t.Fatal(err)
		}
	}
	expect()
	for _, key := range keys[:3] {
		if err := open(key).SetDWordValue("AllowLocalPolicyMerge", 0); err != nil {
			t.Fatal(err)
		}
	}
	expect(host.Profiles()...)
	rules := open(keys[3])
	if err := rules.SetDWordValue("no rule", 1); err != nil {
		t.Fatal(err)
	}
	if err := rules.SetStringValue("{1}", "v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|Profile=Private|LPort=22|Name=SSH|"); err != nil {
		t.Fatal(err)
	}
	expect(host.ProfileDomain, host.ProfilePublic)
	if err := open(keys[0]).SetDWordValue("EnableFirewall", 0); err != nil {
		t.Fatal(err)
	}
	expect(host.ProfilePublic)
	if err := open(keys[2]).SetDWordValue("DefaultInboundAction", 0); err != nil {
		t.Fatal(err)
	}
	expect()
}
