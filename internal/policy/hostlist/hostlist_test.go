package hostlist

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// L-21
func TestParseEntry(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		want       Entry
		problem    string // part of the message; empty: accepted
	}{
		"an IPv4 address": {"10.1.42.1", "username=Administrator",
			Entry{"10.1.42.1", "Administrator"}, ""},
		"a DNS name": {"instance.example.com", "username=core",
			Entry{"instance.example.com", "core"}, ""},
		"a value from a YAML block": {"10.1.42.1", "  username=core\n",
			Entry{"10.1.42.1", "core"}, ""},
		"a user name with a space inside": {"10.1.42.1", "username=Jane Doe",
			Entry{"10.1.42.1", "Jane Doe"}, ""},
		"no value":                 {"10.1.42.1", "", Entry{}, "username=<user>"},
		"another key in the value": {"10.1.42.1", "user=core", Entry{}, "username=<user>"},
		"an empty user": {"10.1.42.1", "username=", Entry{},
			"user name is missing"},
		"a user that would be an option": {"10.1.42.1", "username=-oProxyCommand",
			Entry{}, "begin with '-'"},
		"a user of a domain":                        {"10.1.42.1", `username=CORP\jane`, Entry{"10.1.42.1", `CORP\jane`}, ""},
		"a user of a domain by its DNS name":        {"10.1.42.1", `username=corp.example.com\jane`, Entry{"10.1.42.1", `corp.example.com\jane`}, ""},
		"a user principal name":                     {"10.1.42.1", "username=jane.doe@corp.example.com", Entry{"10.1.42.1", "jane.doe@corp.example.com"}, ""},
		"one that is longer than an account's name": {"10.1.42.1", "username=jane.dorothea.doe.wilkinson@corp", Entry{"10.1.42.1", "jane.dorothea.doe.wilkinson@corp"}, ""},
		"a domain without a user":                   {"10.1.42.1", `username=CORP\`, Entry{}, "missing"},
		"a user without the domain":                 {"10.1.42.1", `username=\jane`, Entry{}, "missing"},
		"a principal name without the user":         {"10.1.42.1", "username=@corp.example.com", Entry{}, "missing"},
		"a principal name without the domain":       {"10.1.42.1", "username=jane@", Entry{}, "DNS name"},
		"a domain that is too long for NetBIOS":     {"10.1.42.1", `username=CORPORATION-NORTH\jane`, Entry{}, "15"},
		"a domain's user that is too long":          {"10.1.42.1", `username=CORP\` + strings.Repeat("a", 21), Entry{}, "20"},
		"a principal name that is too long":         {"10.1.42.1", "username=" + strings.Repeat("a", 65) + "@corp", Entry{}, "64"},
		"a whole that is too long":                  {"10.1.42.1", "username=a@" + strings.Repeat("corp.", 20) + "com", Entry{}, "104"},
		"a domain within a domain":                  {"10.1.42.1", `username=A\B\jane`, Entry{}, "does not allow"},
		"both forms at once":                        {"10.1.42.1", `username=CORP\jane@corp`, Entry{}, "does not allow"},
		"two principals":                            {"10.1.42.1", "username=jane@corp@example.com", Entry{}, "DNS name"},
		"the local machine as a domain":             {"10.1.42.1", `username=.\jane`, Entry{}, "begins with a dot"},
		"a domain that would be a path":             {"10.1.42.1", `username=..\jane`, Entry{}, "begins with a dot"},
		"a domain that would be an option":          {"10.1.42.1", `username=-oProxy\jane`, Entry{}, "begin with '-'"},
		"a domain's user that would be an option":   {"10.1.42.1", `username=CORP\-jane`, Entry{}, "begin with '-'"},
		"a domain with shell syntax":                {"10.1.42.1", "username=jane@corp&calc", Entry{}, "DNS name"},
		"a user with a line break":                  {"10.1.42.1", "username=a\nb", Entry{}, `'\n'`},
		"a user that is too long for Windows": {"10.1.42.1", "username=" + strings.Repeat("a",
			21), Entry{}, "20"},
		"an IPv6 address": {"fd00::1", "username=core", Entry{}, "IPv6"},
		"an IPv4 address with a number above 255": {"10.1.42.256", "username=core", Entry{},
			"not an IPv4 address"},
		"an IPv4 address with too few numbers": {"10.1.42", "username=core", Entry{},
			"not an IPv4 address"},
		"the loopback address": {"127.0.0.1", "username=core", Entry{},
			"cannot be the address"},
		"a multicast address": {"224.0.0.1", "username=core", Entry{},
			"cannot be the address"},
		"a name with an underscore": {"my_host", "username=core", Entry{},
			"neither an IPv4 address nor a DNS name"},
		"a name that would be an option": {"-host", "username=core", Entry{},
			"neither an IPv4 address nor a DNS name"},
		"a name that would be a path": {"..", "username=core", Entry{}, "not an IPv4 address"},
		"an address with a port":      {"10.1.42.1:22", "username=core", Entry{}, "neither"},
		"the broadcast address": {"255.255.255.255", "username=core", Entry{},
			"cannot be the address"},
		"the unspecified address": {"0.0.0.0", "username=core", Entry{},
			"cannot be the address"},
		"an address that is assigned by no DHCP server": {"169.254.1.1", "username=core", Entry{},
			"cannot be the address"},
		"an address of class E": {"241.0.0.1", "username=core", Entry{},
			"cannot be the address"},
		"the name of the operator's own machine":                  {"localhost", "username=core", Entry{}, "cannot be the address"},
		"a number that some take for an address":                  {"0x7f000001", "username=core", Entry{}, "neither"},
		"a name whose last part is a number":                      {"host.1", "username=core", Entry{}, "neither"},
		"a name in capitals":                                      {"WIN.example.com", "username=core", Entry{"WIN.example.com", "core"}, ""},
		"a user name in another script":                           {"10.1.42.1", "username=администратор", Entry{"10.1.42.1", "администратор"}, ""},
		"a user name that is written backwards":                   {"10.1.42.1", "username=a\u202eb", Entry{}, "does not allow"},
		"a user name that is no text":                             {"10.1.42.1", "username=a\xffb", Entry{}, "does not allow"},
		"an address with leading zeros, which is octal elsewhere": {"010.1.42.1", "username=core", Entry{}, "not an IPv4 address"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseEntry(c.key, c.value)
			switch {
			case c.problem == "" && (err != nil || got != c.want):
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("got %+v, %v; want an error about %q", got, err, c.problem)
			}
		})
	}
}

func TestInstanceName_ValidAndUnique(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"10.0.0.1", "10.0.0.11", "a.b", "a-b", "A.B", strings.Repeat("long.", 49) + "x", "...",
		"_"} {
		for _, name := range []string{InstanceName(key), LongInstanceName(key)} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%q becomes %q: %v", key, name, problems)
			}
			if other, duplicate := seen[name]; duplicate {
				t.Errorf("%q and %q share the name %s", key, other, name)
			}
			seen[name] = key
			if name != InstanceName(key) && name != LongInstanceName(key) {
				t.Errorf("%q has no stable name", key)
			}
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add("10.1.42.1", "username=Administrator")
	f.Add("a.b", "username=\x00")
	f.Fuzz(func(t *testing.T, key, value string) {
		entry, err := ParseEntry(key, value)
		if err == nil && (entry.Address != key || entry.Username == "" || strings.ContainsAny(entry.Username,
			"\"\n\r\x00|<>/")) {
			t.Errorf("accepted %q: %q as %+v", key, value, entry)
		}
		if problems := validation.IsDNS1123Label(InstanceName(key)); len(problems) > 0 {
			t.Errorf("name of %q: %v", key, problems)
		}
	})
}
