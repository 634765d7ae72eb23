package userdata

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

var update = flag.Bool("update", false, "write the golden files anew")

// publicLine is a public key. Its private key was discarded.
const publicLine = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPwR8Rz6xlBy/9Ow9z7Rsd/mN7N/NvVlDcHzGDFdCPgR"

// maxLengthKey returns the longest RSA key that OpenSSH accepts: 16384 bits.
func maxLengthKey() ssh.PublicKey {
	modulus := slices.Concat([]byte{0, 0x80}, make([]byte, 2046), []byte{1})
	blob := ssh.Marshal(struct {
		Type              string
		Exponent, Modulus []byte
	}{"ssh-rsa", []byte{1, 0, 1}, modulus})
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		panic(err)
	}
	return key
}

func publicKey(t testing.TB) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(publicLine))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func mustGenerate(t testing.TB, platform string) string {
	t.Helper()
	script, err := Generate(platform, publicKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

var platforms = []string{"AWS", "Azure", "GCP", "Nutanix", "VSphere", "None"}

// The scripts are pinned byte by byte. After an intended change: go test ./internal/userdata -update, and
// review the diff. hack/powershell parses these files. R-024
func TestGoldenScripts(t *testing.T) {
	scripts := map[string]string{}
	for _, platform := range platforms {
		scripts[strings.ToLower(platform)] = mustGenerate(t, platform)
	}
	long, err := Generate("AWS", maxLengthKey())
	if err != nil {
		t.Fatal(err)
	}
	scripts["aws-longest-key"] = string(long)
	for name, got := range scripts {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".ps1")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; if that is meant, run `go test ./internal/userdata -update` and read the difference. Got:\n%s", path, got)
			}
		})
	}
}

func TestScripts(t *testing.T) {
	wrapped := map[string][2]string{
		"AWS":     {"<powershell>\n", "</powershell>\n<persist>true</persist>\n"},
		"Nutanix": {"#ps1_sysnative\n", ""},
		"VSphere": {"#ps1_sysnative\n", ""},
	}
	for _, platform := range platforms {
		script := mustGenerate(t, platform)
		t.Run(platform+": it is in the form that is run there, and the rest is the same everywhere but for the user", func(t *testing.T) {
			form := wrapped[platform]
			inner, begins := strings.CutPrefix(script, form[0])
			inner, ends := strings.CutSuffix(inner, form[1])
			if !begins || !ends {
				t.Fatalf("it is not within %q", form)
			}
			same := strings.ReplaceAll(strings.ReplaceAll(inner, "'"+User(platform)+"'", "'Administrator'"), "# user: "+User(platform)+"\n", "# user: Administrator\n")
			if strings.TrimSpace(same) != strings.TrimSpace(mustGenerate(t, "None")) {
				t.Errorf("it is another script:\n%s", inner)
			}
			if strings.ContainsAny(inner, "<>") && regexp.MustCompile(`</?(powershell|script|persist|detach)>`).MatchString(inner) {
				t.Error("a tag is within the script")
			}
		})
		t.Run(platform+": what the header declares is what the script does", func(t *testing.T) {
			settings, err := ParseHeader([]byte(script))
			if err != nil {
				t.Fatal(err)
			}
			if settings.PublicKey != publicLine || settings.User != User(platform) || !slices.Equal(settings.Ports, []int{22, 10250}) || settings.Version != Version {
				t.Errorf("it declares %+v", settings)
			}
			assignments := []string{"\n$User = '" + settings.User + "'\n", "\n$PublicKey = '" + settings.PublicKey + "'\n"}
			for _, port := range settings.Ports {
				assignments = append(assignments, fmt.Sprintf(" -LocalPort %d -Enabled True -Direction Inbound -Protocol TCP -Action Allow", port))
			}
			for _, want := range assignments {
				if strings.Count(script, want) != 1 {
					t.Errorf("%q is there %d times", want, strings.Count(script, want))
				}
			}
		})
	}
	script := mustGenerate(t, "AWS")
	t.Run("the rule for 10250 is the one of the guides", func(t *testing.T) {
		if !strings.Contains(script, "New-NetFirewallRule -DisplayName ContainerLogsPort -LocalPort 10250 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -EdgeTraversalPolicy Allow") {
			t.Error("it is not there")
		}
	})
	t.Run("the user belongs to the platform", func(t *testing.T) {
		if User("Azure") != "capi" || User("AWS") != "Administrator" || User("None") != "Administrator" || User("") != "Administrator" {
			t.Error("it is another")
		}
	})
	t.Run("Windows PowerShell 5.1 reads it whatever the machine's code page, and lines end as in Secrets", func(t *testing.T) {
		if i := strings.IndexFunc(script, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
			t.Errorf("%q is there", script[i])
		}
	})
	t.Run("it fits into what EC2 takes, with the longest key", func(t *testing.T) {
		long, err := Generate("AWS", maxLengthKey())
		if err != nil || len(long) > 16<<10 {
			t.Errorf("%d bytes, error %v", len(long), err)
		}
		if _, err := ParseHeader(long); err != nil {
			t.Error(err)
		}
	})
	t.Run("equal inputs give equal scripts, so that nothing is written without need", func(t *testing.T) {
		if mustGenerate(t, "AWS") != script {
			t.Error("it differs")
		}
	})
	t.Run("another key is another script", func(t *testing.T) {
		other, err := Generate("AWS", maxLengthKey())
		if err != nil || string(other) == script {
			t.Errorf("it is the same, or error %v", err)
		}
	})
	t.Run("platforms that nobody has heard of get the plain form", func(t *testing.T) {
		if mustGenerate(t, "Mainframe") != mustGenerate(t, "None") || mustGenerate(t, "") != mustGenerate(t, "None") {
			t.Error("they get another")
		}
	})
	t.Run("no key, no script", func(t *testing.T) {
		if script, err := Generate("AWS", nil); err == nil {
			t.Errorf("got %s", script)
		}
	})
}

// This test applies the pattern of the script to sshd_config. It assumes only the replacement of .NET, which
// for this pattern behaves like Go's.
func TestScript_DisablesPasswordAuthentication(t *testing.T) {
	script := mustGenerate(t, "AWS")
	found := regexp.MustCompile(`\[regex\]::Replace\(\$text, '(.*)', \$line\)`).FindStringSubmatch(script)
	if found == nil || !strings.Contains(script, "$line = 'PasswordAuthentication no'\n") ||
		!strings.Contains(script, "if (-not $changed.StartsWith($line, [StringComparison]::Ordinal)) { $changed = \"$line`r`n$changed\" }") {
		t.Fatal("the script does something else")
	}
	pattern := regexp.MustCompile(found[1])
	const line = "PasswordAuthentication no"
	change := func(text string) string {
		changed := pattern.ReplaceAllString(text, line)
		if !strings.HasPrefix(changed, line) {
			changed = line + "\r\n" + changed
		}
		return changed
	}
	for name, c := range map[string]struct{ before, after string }{
		"Windows' own file, where it is a comment": {
			"# default\r\n#PubkeyAuthentication yes\r\n#PasswordAuthentication yes\r\n#PermitEmptyPasswords no\r\n",
			line + "\r\n# default\r\n#PubkeyAuthentication yes\r\n" + line + "\r\n#PermitEmptyPasswords no\r\n"},
		"a file that allows it": {"Port 22\nPasswordAuthentication yes\n", line + "\r\nPort 22\n" + line + "\n"},
		"a section that allows it": {"Port 22\r\nMatch User bob\r\n\tpasswordauthentication=yes # for bob\r\n",
			line + "\r\nPort 22\r\nMatch User bob\r\n" + line + "\r\n"},
		"a file that does not mention it": {"Include conf.d/*.conf\r\n", line + "\r\nInclude conf.d/*.conf\r\n"},
		"a file that ends with it":        {"  # PasswordAuthentication yes", line},
		"what only begins like it stays":  {"#PasswordAuthenticationX yes\n", line + "\r\n#PasswordAuthenticationX yes\n"},
		"an empty file":                   {"", line + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := change(c.before)
			if got != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
			if again := change(got); again != got {
				t.Errorf("a second run changes it to %q", again)
			}
		})
	}
}
