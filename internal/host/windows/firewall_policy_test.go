package windows

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestSSHBlockedProfiles(t *testing.T) {
	const rule = "v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=22|Name=SSH|"
	filters := profilePolicy{filters: true}
	all := host.Profiles()
	for name, c := range map[string]struct {
		change func(map[host.FirewallProfiles]profilePolicy)
		rules  []string
		want   []host.FirewallProfiles
	}{
		"a policy without rules blocks SSH":      {want: all},
		"a rule for all profiles allows it":      {rules: []string{rule}},
		"a rule for several ports allows it":     {rules: []string{"v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=443|LPort=22|"}},
		"a rule for some addresses allows it":    {rules: []string{rule + "RA4=10.0.0.0/255.0.0.0|"}},
		"a rule for the program sshd allows it":  {rules: []string{`v2.10|Action=Allow|Active=TRUE|Dir=In|App=%SystemRoot%\System32\OpenSSH\sshd.exe|`}},
		"a rule for another program does not":    {rules: []string{rule + `App=C:\other.exe|`}, want: all},
		"a rule for another service does not":    {rules: []string{rule + "Svc=w32time|"}, want: all},
		"a rule that needs IPsec does not":       {rules: []string{rule + "Security=Authenticate|"}, want: all},
		"a disabled rule does not":               {rules: []string{"v2.30|Action=Allow|Active=FALSE|Dir=In|Protocol=6|LPort=22|"}, want: all},
		"a blocking rule does not":               {rules: []string{"v2.30|Action=Block|Active=TRUE|Dir=In|Protocol=6|LPort=22|"}, want: all},
		"an outbound rule does not":              {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=Out|Protocol=6|LPort=22|"}, want: all},
		"a rule for UDP does not":                {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=17|LPort=22|"}, want: all},
		"a rule for another port does not":       {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=2222|"}, want: all},
		"a rule for other ports does not":        {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort2_10=5000-5010|"}, want: all},
		"a range with the port allows it":        {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort2_10=20-25|"}},
		"a rule for all ports allows it":         {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort2_10=1-65535|"}},
		"one of several ranges allows it":        {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=80|LPort2_10=443-445|LPort2_10=22-22|"}},
		"an invalid range does not":              {rules: []string{"v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort2_10=22|"}, want: all},
		"a text that is no rule does not":        {rules: []string{"", "v2.30"}, want: all},
		"a rule for the domain leaves two":       {rules: []string{rule + "Profile=Domain|"}, want: all[1:]},
		"a rule for two profiles leaves one":     {rules: []string{rule + "Profile=Domain|Profile=Private|"}, want: all[2:]},
		"rules of several profiles are combined": {rules: []string{rule + "Profile=Domain|", rule + "Profile=Private|", rule + "Profile=Public|"}},
		"a profile that merges local rules is not blocked": {func(policies map[host.FirewallProfiles]profilePolicy) {
			policies[host.ProfilePublic] = profilePolicy{merges: true, filters: true}
		}, nil, all[:2]},
		"a profile without filtering is not blocked": {func(policies map[host.FirewallProfiles]profilePolicy) {
			policies[host.ProfileDomain] = profilePolicy{}
		}, nil, all[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			policies := map[host.FirewallProfiles]profilePolicy{all[0]: filters, all[1]: filters, all[2]: filters}
			if c.change != nil {
				c.change(policies)
			}
			if got := sshBlockedProfiles(policies, c.rules); !slices.Equal(got, c.want) {
				t.Errorf("SSH is blocked in %v, want %v", got, c.want)
			}
		})
	}
}
