package remote

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

const agentPath = `C:\k\wicd\0123456789ab\wicd.exe`

func TestCommandLine_SafeArgumentsAccepted(t *testing.T) {
	for want, c := range map[string]struct {
		name agentapi.Name
		args []string
	}{
		agentPath + ` facts`: {agentapi.Facts, nil},
		agentPath + ` apply --spec C:\k\wicd\inbox\spec-0123456789ab.json --payload C:\k\wicd\inbox\payload-ba9876543210.zst`: {
			agentapi.Apply, []string{"--spec", `C:\k\wicd\inbox\spec-0123456789ab.json`, "--payload",
				`C:\k\wicd\inbox\payload-ba9876543210.zst`}},
		agentPath + ` renew --identity cloud-node-manager --identity-certificate cloud-node-manager:MIIB_-x`: {
			agentapi.Renew, []string{"--identity", "cloud-node-manager", "--identity-certificate", "cloud-node-manager:MIIB_-x"}},
		agentPath + ` facts --api-server https://api-int.lab.example.com:6443`: {
			agentapi.Facts, []string{"--api-server", "https://api-int.lab.example.com:6443"}},
		agentPath + ` rollback --digest sha256:0123456789ab`:  {agentapi.Rollback, []string{"--digest", "sha256:0123456789ab"}},
		agentPath + ` commit`:                                 {agentapi.Commit, nil},
		agentPath + ` reboot --boot-id boot:01dc5a0b9c8d7e6f`: {agentapi.Reboot, []string{"--boot-id", "boot:01dc5a0b9c8d7e6f"}},
		agentPath + ` remove -v word_1`:                       {agentapi.Remove, []string{"-v", "word_1"}},
	} {
		got, err := commandLine(agentPath, c.name, c.args)
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// R-069, L-20: no word is sent that cmd.exe or PowerShell could interpret.
func TestCommandLine_UnsafeArgumentsRejected(t *testing.T) {
	words := []string{
		"", " ", "-", "--", "---x", "a b", "a\tb", "a\nb", "a\rb", "a\x00b", "ä", "a\u00a0b", "a\u2028b", "a–b", "a”b",
		"--spec=x", "-a.b", "-a:b", "--%", "@splat", "#comment", "1..2", "~", "1", "10.0.0.1", "10.0.0.0/8/8", "/8",
		"10.0.0.0/", "1.2.3/8",
		"http://a:1", "https://a", "https://a:1/", "https://:1", "https://-a:1", "https://a&b:1", "https://u@a:1",
		"//a:1", "https://a:123456",
	}
	for _, special := range "'\"%^&|<>$`(){}[],;*?!=+@#~/" {
		words = append(words, string(special), "a"+string(special), string(special)+"a", "a"+string(special)+"b",
			`C:\a`+string(special))
	}
	for _, word := range words {
		if line, err := commandLine(agentPath, agentapi.Facts, []string{word}); err == nil {
			t.Errorf("argument %q was let through: %s", word, line)
		}
		if line, err := commandLine(`C:\k\`+word+`\wicd.exe`, agentapi.Facts, nil); err == nil &&
			!argumentWord.MatchString(word) && !strings.HasPrefix(word, "1") {
			t.Errorf("path with %q was let through: %s", word, line)
		}
	}
	for _, path := range []string{"", "wicd.exe", `\\server\share\wicd.exe`, `C:wicd.exe`, `C:\k\wicd`, `C:\..\wicd.exe`,
		`C:\k\\wicd.exe`, `C:\Program Files\wicd.exe`} {
		if line, err := commandLine(path, agentapi.Facts, nil); err == nil {
			t.Errorf("path %q was let through: %s", path, line)
		}
	}
	for _, name := range []agentapi.Name{"", "facts & calc", agentapi.Service, "unknown"} {
		if line, err := commandLine(agentPath, name, nil); err == nil {
			t.Errorf("verb %q was let through: %s", name, line)
		}
	}
	if _, err := commandLine(agentPath, agentapi.Facts, []string{strings.Repeat("a", 5000)}); err == nil {
		t.Error("a command line longer than a shell takes was let through")
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("--spec", `C:\k\spec.json`)
	f.Add("a&b", "$(calc)")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := commandLine(agentPath, agentapi.Apply, []string{a, b})
		if err != nil {
			return
		}
		if strings.ContainsAny(line, "'\"%^&|<>$`(){}[],;*?!=+@#~\r\n\t") || len(strings.Split(line, " ")) != 4 {
			t.Errorf("%q", line)
		}
	})
}

func TestShells(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   shell
	}{
		"cmd.exe":                            {"Windows_NT $PSHOME\r\n", shellCmd},
		"cmd.exe with an AutoRun that talks": {"Welcome\r\nWindows_NT $PSHOME\r\n", shellCmd},
		"Windows PowerShell": {"%OS%\r\nC:\\Windows\\System32\\WindowsPowerShell\\v1.0\r\n",
			shellPowerShell},
		"PowerShell 7":                         {"\x1b[?1h%OS%\r\nC:\\Program Files\\PowerShell\\7\r\n", shellPowerShell},
		"PowerShell with a profile that talks": {"Loading…\r\n%OS%\r\nc:\\program files\\powershell\\7\r\n", shellPowerShell},
		"bash of Git":                          {"%OS%\n", shellOther},
		"bash of WSL":                          {"%OS% \n", shellOther},
		"PowerShell on Linux":                  {"%OS%\n/opt/microsoft/powershell/7\n", shellOther},
		"a menu":                               {"1) Status 2) Exit\n", shellOther},
		"nothing":                              {"", shellOther},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shellOf(c.answer); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestSanitize(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"  two\r\nlines\t":             "two  lines",
		"\x1b[31mred\x1b[0m\x07\x00":   "[31mred[0m",
		"bad \xff utf-8":               "bad  utf-8",
		"right\u202eto\u2066left":      "righttoleft",
		strings.Repeat("é", 400):       strings.Repeat("é", 248) + "…",
		"a" + strings.Repeat("é", 400): "a" + strings.Repeat("é", 248) + "…",
	} {
		if got := sanitizeText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	var end tail
	for range 10000 {
		_, _ = end.Write([]byte("noise\r\n"))
	}
	_, _ = end.Write([]byte("\r\nlast \x1b[0mwords\r\n"))
	if got := end.String(); got != "noise | noise | noise | noise | last [0mwords" {
		t.Errorf("%q", got)
	}
	if len(end.data) > tailLimit {
		t.Errorf("%d bytes are kept", len(end.data))
	}
}

func TestSFTPPaths(t *testing.T) {
	for windows, want := range map[string]string{
		`C:\k\wicd\x.json`: "/C:/k/wicd/x.json",
		`c:/k`:             "/c:/k",
		`D:\`:              "/D:/",
	} {
		if got, err := sftpPath(windows); err != nil || got != want {
			t.Errorf("%s became %s, %v", windows, got, err)
		}
	}
	for _, windows := range []string{
		"", "k", `\k`, "C:", "C:k", `CC:\k`, `1:\k`, `C:\k\`, `C:\k\..\x`, `C:\k\.\x`, `C:\\k`, `C:\k:stream`, "C:\\k\x00",
		`C:\k*`, `\\server\share`,
	} {
		if got, err := sftpPath(windows); err == nil {
			t.Errorf("%q became %s", windows, got)
		}
	}
}
