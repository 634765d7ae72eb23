package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const scripts = "../../internal/userdata/testdata"

var grammar = func() *parser {
	p, err := newParser(context.Background())
	if err != nil {
		panic(err)
	}
	return p
}()

// The user data of each platform is the operator's output byte for byte (internal/userdata compares them). The test
// checks that the user data conforms to the PowerShell grammar, calls only commands that Windows has, and matches
// the header. R-026
func TestUserData_EachPlatformIsValidPowerShell(t *testing.T) {
	files, err := filepath.Glob(scripts + "/*.ps1")
	must(t, err)
	for _, platform := range []string{"aws", "azure", "gcp", "none", "nutanix", "vsphere", "aws-longest-key"} {
		if !slices.Contains(files, filepath.Join(scripts, platform+".ps1")) {
			t.Errorf("there is no script of %s", platform)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			must(t, err)
			for _, f := range faults(t, string(content)) {
				t.Error(f)
			}
			doesWhatItDeclares(t, content)
		})
	}
}

// doesWhatItDeclares compares the header with the tree of the script.
func doesWhatItDeclares(t *testing.T, content []byte) {
	t.Helper()
	s, err := grammar.read(t.Context(), content)
	must(t, err)
	header := func(name string) string {
		line := regexp.MustCompile(`(?m)^# ` + name + `: (.*)$`).FindSubmatch(content)
		if line == nil {
			t.Fatalf("the header has no %s", name)
		}
		return string(line[1])
	}
	for _, statement := range missingLogin(s) {
		t.Errorf("the script lacks, in the step %s", statement)
	}
	var ports []string
	called := map[string][]use{}
	for _, u := range s.uses() {
		called[u.name] = append(called[u.name], u)
		if c, _ := s.command(u.name); c.ofModule && u.parameters["ErrorAction"] == "" {
			t.Errorf("%s would not see the script's preference, and has no -ErrorAction", u.name)
		}
	}
	for _, u := range called["New-NetFirewallRule"] {
		ports = append(ports, u.parameters["LocalPort"])
		for name, want := range map[string]string{"Enabled": "True", "Direction": "Inbound", "Protocol": "TCP",
			"Action": "Allow", "ErrorAction": "Stop"} {
			if u.parameters[name] != want {
				t.Errorf("the rule for port %s has -%s %s", u.parameters["LocalPort"], name, u.parameters[name])
			}
		}
	}
	if got := strings.Join(ports, " "); got != header("ports") {
		t.Errorf("ports %s are opened, and %s declared", got, header("ports"))
	}
	for variable, name := range map[string]string{"$User": "user", "$PublicKey": "public-key"} {
		if !slices.ContainsFunc(s.root.all("assignment_expression"), func(n *node) bool {
			return s.of(n) == variable+" = '"+header(name)+"'"
		}) {
			t.Errorf("nothing sets %s to the %s of the header", variable, name)
		}
	}
	if len(called["Add-WindowsCapability"]) != 1 ||
		called["Add-WindowsCapability"][0].parameters["Name"] != "'OpenSSH.Server~~~~0.0.1.0'" {
		t.Errorf("what is installed is %+v", called["Add-WindowsCapability"])
	}
	if len(called["Set-Service"]) != 1 || called["Set-Service"][0].parameters["StartupType"] != "Automatic" ||
		called["Set-Service"][0].parameters["Name"] != "sshd" ||
		len(called["Start-Service"]) != 1 || called["Start-Service"][0].parameters["Name"] != "sshd" {
		t.Errorf("the service sshd is not started now and at each boot: %+v, %+v", called["Set-Service"],
			called["Start-Service"])
	}
}

// A mistake in any line of the script is detected. R-026
func TestCheck_ScriptMistakesDetected(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(scripts, "aws.ps1"))
	must(t, err)
	script := string(content)
	for name, c := range map[string]struct{ old, changed, says string }{
		"a brace that is missing": {"        Start-Sleep -Seconds 15\n    }\n",
			"        Start-Sleep -Seconds 15\n", `"}" is missing`},
		"a brace too many": {"Write-Log 'the operator can log in'\n",
			"Write-Log 'the operator can log in'\n}\n", "not PowerShell"},
		"a string that does not end": {"$Log = Join-Path $env:SystemRoot 'Logs\\windows-user-data.log'",
			"$Log = Join-Path $env:SystemRoot 'Logs\\windows-user-data.log", "not PowerShell"},
		"a string with variables that does not end": {`Write-Log "done: $Name"`,
			`Write-Log "done: $Name`, "not PowerShell"},
		"a string that ends with an escaped quote": {`Write-Log "done: $Name"`,
			"Write-Log \"done: $Name`\"", "not PowerShell"},
		"a here-string whose end is indented":             {"$text = ''\n", "$text = @\"\n    a\n    \"@\n", "not PowerShell"},
		"an if without parentheses":                       {"if ($Failed.Count -gt 0) {", "if $Failed.Count -gt 0 {", "not PowerShell"},
		"a parenthesis that does not close":               {"if ($Failed.Count -gt 0) {", "if ($Failed.Count -gt 0 {", "not PowerShell"},
		"an expression in a string that does not close":   {`$($Failed -join '; ')"`, `$($Failed -join '; '"`, "not PowerShell"},
		"a foreach with another word":                     {"foreach ($group in ", "foreach ($group of ", "not PowerShell"},
		"a type that does not close":                      {"[IO.File]::SetAccessControl", "[IO.File::SetAccessControl", "missing"},
		"a comma that is missing between arguments":       {"AppendAllText($file, ", "AppendAllText($file ", "not PowerShell"},
		"a pipe to nothing":                               {"Write-Log 'the operator can log in'\n", "Write-Log 'x' |\n", "not PowerShell"},
		"a try without a catch":                           {"        } catch {\n            Write-Log \"failed: ${Name}: $($_.Exception.Message)\"\n        }\n", "        }\n", "needs a catch"},
		"an else without an if":                           {"Write-Log 'the operator can log in'\n", "Write-Log 'x'\nelse { Write-Log 'y' }\n", "no command else"},
		"an operator of PowerShell 7":                     {"Get-Service -Name sshd\n    }", "Get-Service -Name sshd && Get-Service\n    }", "5.1 does not know the operator &&"},
		"a colon behind a variable in a string":           {`"failed: ${Name}:`, `"failed: $Name:`, "$Name: put the name in braces"},
		"a command that is misspelled":                    {"Add-WindowsCapability", "Add-WindowCapability", "no command Add-WindowCapability"},
		"a function of the script that is misspelled":     {"Write-Log 'the operator", "Write-Lgo 'the operator", "no command Write-Lgo"},
		"a parameter that is misspelled":                  {"-LocalPort 10250", "-LocalPorts 10250", "no parameter -LocalPorts"},
		"a parameter without its value":                   {"-LocalPort 10250 ", "-LocalPort ", "-LocalPort needs a value"},
		"a value that a parameter does not take":          {"-StartupType Automatic", "-StartupType Auto", "accepts Automatic"},
		"a rule that nobody named":                        {"-DisplayName 'OpenSSH SSH Server (sshd)' ", "", "needs the parameter -DisplayName"},
		"a capability of no image":                        {"Add-WindowsCapability -Online ", "Add-WindowsCapability ", "needs the parameter -Online"},
		"a password in the clear that is not forced":      {" -AsPlainText -Force", " -AsPlainText", "needs the parameter -Force"},
		"a value too many":                                {"Start-Sleep -Seconds 15", "Start-Sleep 15 16", "accepts 1 positional values"},
		"an argument too many to a function":              {"Invoke-Step 'TCP port 22 is open' 1 {", "Invoke-Step 'TCP port 22 is open' 1 2 {", "accepts 3 positional values"},
		"a variable that is misspelled":                   {"[IO.File]::AppendAllText($file, \"$PublicKey`", "[IO.File]::AppendAllText($file, \"$PublicKye`", "$PublicKye"},
		"a variable of the environment that is not there": {"$env:ProgramData 'ssh", "$env:ProgrammData 'ssh", "$env:ProgrammData"},
		"a type that is misspelled":                       {"New-Object Security.AccessControl.FileSecurity", "New-Object Security.AccessControl.FileSecurities", "no type"},
		"a static method that is not its type's":          {"[Convert]::ToBase64String", "[Convert]::ToBase64", "has no ToBase64"},
		"a method that nothing has":                       {"$access.SetOwner(", "$access.SetOwners(", "has no SetOwners"},
		"a tag that does not end":                         {"</powershell>\n", "", "does not end with"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(script, c.old) == 0 {
				t.Fatalf("the script has no %q", c.old)
			}
			found := faults(t, strings.Replace(script, c.old, c.changed, 1))
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), c.says) {
				t.Errorf("found is %q, want %q", found, c.says)
			}
		})
	}
	t.Run("a comment changes nothing", func(t *testing.T) {
		if found := faults(t, strings.Replace(script, "# Windows fetches", "# } ' \" $nobody Windows fetches", 1)); len(found) > 0 {
			t.Error(found)
		}
	})
	t.Run("the line is the line of the file", func(t *testing.T) {
		found := faults(t, strings.Replace(script, "Write-Log 'the operator can log in'", "Write-Lgo 'x'", 1))
		want := fmt.Sprintf("%d: ", 1+strings.Count(script[:strings.Index(script, "Write-Log 'the operator can log in'")], "\n"))
		if len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%q is not in line %s", found, want)
		}
	})
}

// Commands that a guide instructs an administrator to type. R-193
func TestGuide_FirewallCommandIsValidPowerShell(t *testing.T) {
	guide, err := os.ReadFile("../../docs/vsphere.md")
	must(t, err)
	lines := regexp.MustCompile(`(?m)^ +PS C:\\> (New-NetFirewallRule .*)$`).FindAllSubmatch(guide, -1)
	if len(lines) == 0 {
		t.Fatal("docs/vsphere.md has no such command")
	}
	for _, line := range lines {
		if found := faults(t, string(line[1])+"\n"); len(found) > 0 {
			t.Errorf("%s: %q", line[1], found)
		}
	}
}

// The grammar in this repository must match the description on its page.
func TestGrammar_MatchesDocumentedChecksums(t *testing.T) {
	page, err := os.ReadFile("grammar/README.md")
	must(t, err)
	for _, name := range []string{"powershell.wasm.gz", "parse.c"} {
		content, err := os.ReadFile("grammar/" + name)
		must(t, err)
		sum := sha256.Sum256(content)
		if !strings.Contains(string(page), hex.EncodeToString(sum[:])) {
			t.Errorf("grammar/README.md does not have the sha256 of %s: %x", name, sum)
		}
	}
}

func TestRun(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.ps1")
	must(t, os.WriteFile(bad, []byte("Get-Service\nif {\n"), 0o600))
	var out bytes.Buffer
	if err := run(t.Context(), []string{filepath.Join(scripts, "none.ps1"), bad}, &out); err == nil ||
		!strings.Contains(err.Error(), bad+":2: ") {
		t.Errorf("%v, %s", err, out.String())
	}
	if err := run(t.Context(), nil, &out); err == nil {
		t.Error("no file is no error")
	}
}

// faults returns the faults of a script with line numbers, or the error of an unreadable script.
func faults(t *testing.T, content string) []string {
	t.Helper()
	found, err := grammar.check(t.Context(), []byte(content))
	if err != nil {
		return []string{err.Error()}
	}
	var told []string
	for _, f := range found {
		told = append(told, fmt.Sprintf("%d: %s", f.line, f.text))
	}
	return told
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
