package nodename

import (
	"strings"
	"testing"
)

// D-9
func TestNodeName(t *testing.T) {
	for hostName, want := range map[string]string{
		"winhost": "winhost", "WIN-ABC123": "win-abc123", "a": "a", "1host": "1host",
		"WIN_Host": "", "-host": "", "host-": "", "": "", "höst": "", "a.b": "", strings.Repeat("a", 64): "",
	} {
		for _, platform := range []string{"None", "VSphere"} {
			got, err := OfHost(platform, hostName, "")
			if got != want || (err == nil) != (want != "") {
				t.Errorf("host name %q gives %q, %v; want %q", hostName, got, err, want)
			}
			if err != nil && !strings.Contains(err.Error(), "RFC 1123") {
				t.Errorf("the error of %q does not say what is needed: %v", hostName, err)
			}
		}
	}
}

// D-7
func TestNodeName_DomainIncludedOnlyOnVSphere(t *testing.T) {
	long := strings.Repeat("a", 40) + ".example.com" // 52 characters
	for name, c := range map[string]struct{ platform, host, domain, want string }{
		"on vSphere, a member of a domain":                 {"VSphere", "win1", "corp.example.com", "win1.corp.example.com"},
		"in lower case":                                    {"VSphere", "WIN1", "CORP.Example.com", "win1.corp.example.com"},
		"a domain of one label":                            {"VSphere", "win1", "corp", "win1.corp"},
		"a domain with the dot of the root":                {"VSphere", "win1", "corp.example.com.", "win1.corp.example.com"},
		"a host in a workgroup":                            {"VSphere", "win1", "", "win1"},
		"63 characters":                                    {"VSphere", "win-worker", long, "win-worker." + long},
		"64 characters":                                    {"VSphere", "win-workers", long, ""},
		"a domain that DNS does not allow":                 {"VSphere", "win1", "corp_emea.example.com", ""},
		"a domain that is an address of mail":              {"VSphere", "win1", "corp@example.com", ""},
		"a host and domain that are named like an address": {"VSphere", "10", "0.128.9", ""},
		"on Azure":       {"Azure", "WIN1", "corp.example.com", "win1"},
		"on Nutanix":     {"Nutanix", "WIN1", "corp.example.com", "win1"},
		"on bare metal":  {"BareMetal", "WIN1", "corp.example.com", "win1"},
		"on no platform": {"None", "WIN1", "corp.example.com", "win1"},
		"on no platform, in a domain that is too long":    {"None", "WIN1", long + "." + long, "win1"},
		"on no platform, in a domain DNS does not allow":  {"None", "WIN1", "corp_emea", "win1"},
		"on vSphere, a host whose own name cannot be one": {"VSphere", "WIN_1", "corp.example.com", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OfHost(c.platform, c.host, c.domain)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("the refusal has the name, its length and the limit", func(t *testing.T) {
		_, err := OfHost("VSphere", "WIN-workers", long)
		if err == nil || !strings.Contains(err.Error(), "WIN-workers."+long) || !strings.Contains(err.Error(), "64") ||
			!strings.Contains(err.Error(), "63") {
			t.Errorf("it says %v", err)
		}
	})
}
