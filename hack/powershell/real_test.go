package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// realScripts contains the scripts that execute the user data on Windows. PowerShell is not available here, so the
// tests below compare the scripts with the user data.
const realScripts = "../real"

// withoutStandIn lists the cmdlets of the user data that change nothing but the log file and variables. The script
// with replaced cmdlets calls them directly.
var withoutStandIn = strings.Fields("Add-Content ConvertTo-SecureString ForEach-Object Join-Path New-Object Out-Null Test-Path " +
	"Where-Object Write-Host")

func readScript(t *testing.T, path string) *script {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	s, err := grammar.read(t.Context(), content)
	must(t, err)
	return s
}

// readRealScript returns a script of hack/real, and fails if the grammar does not accept the script.
func readRealScript(t *testing.T, name string) *script {
	t.Helper()
	s := readScript(t, filepath.Join(realScripts, name))
	s.checkSyntax()
	for _, f := range s.faults {
		t.Errorf("%s:%d: %s", name, f.line, f.text)
	}
	return s
}

// The script for CI runners contains no names of the user data.
func TestRunnerScript_IsValidPowerShell(t *testing.T) { readRealScript(t, "runner.ps1") }

// userData returns the user data of all platforms.
func userData(t *testing.T) map[string]*script {
	t.Helper()
	files, err := filepath.Glob(scripts + "/*.ps1")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there is no user data")
	}
	all := map[string]*script{}
	for _, file := range files {
		all[filepath.Base(file)] = readScript(t, file)
	}
	return all
}

// standIns returns the script of the functions that replace cmdlets.
func standIns(t *testing.T, whole *script) *script {
	t.Helper()
	found := regexp.MustCompile(`(?s)\$standIns = @'\n(.*?)\n'@\n`).FindSubmatch(whole.text)
	if found == nil {
		t.Fatal("the script has no here-string $standIns")
	}
	s, err := grammar.read(t.Context(), append(found[1], '\n'))
	must(t, err)
	s.checkSyntax()
	for _, f := range s.faults {
		t.Errorf("stand-ins, line %d: %s", f.line, f.text)
	}
	return s
}

// unquote returns the value of a string literal in single or double quotes without escapes.
func unquote(literal string) string { return literal[1 : len(literal)-1] }

// The script for Windows replaces exactly the cmdlets of the user data that change a machine, with the parameters
// that the user data passes.
func TestFakeCmdlets_MatchCmdletsOfUserData(t *testing.T) {
	replaced := standIns(t, readRealScript(t, "userdata.ps1"))
	var unused []string // functions that replace no cmdlet of the user data
	for _, function := range replaced.root.all("function_statement") {
		if name := replaced.of(function.child("function_name")); name != "Register-Call" {
			unused = append(unused, name)
		}
	}
	for name, s := range userData(t) {
		for _, u := range s.uses() {
			if _, cmdlet := cmdlets[u.name]; !cmdlet || slices.Contains(withoutStandIn, u.name) {
				continue
			}
			function := functionOf(replaced, u.name)
			if function == nil {
				t.Errorf("%s calls %s, which has no stand-in", name, u.name)
				continue
			}
			parameters := parametersOf(replaced, function)
			for parameter := range u.parameters {
				if !slices.Contains(parameters, parameter) {
					t.Errorf("%s calls %s with -%s, which the stand-in does not have", name, u.name, parameter)
				}
			}
			unused = slices.DeleteFunc(unused, func(name string) bool { return name == u.name })
		}
	}
	if len(unused) > 0 {
		t.Errorf("the user data does not call %q", unused)
	}
}

// functionOf returns the function with the name, or nil.
func functionOf(s *script, name string) *node {
	for _, function := range s.root.all("function_statement") {
		if s.of(function.child("function_name")) == name {
			return function
		}
	}
	return nil
}

// parametersOf returns the names of the parameters that a function accepts, without "$".
func parametersOf(s *script, function *node) (names []string) {
	for _, parameter := range function.all("script_parameter") {
		names = append(names, strings.TrimPrefix(s.of(parameter.child("variable")), "$"))
	}
	if strings.Contains(s.of(function), "[CmdletBinding()]") {
		names = append(names, "ErrorAction") // and other common parameters
	}
	return names
}

// The texts that the script for Windows replaces, and its steps, exist in the user data of each platform.
func TestUserData_ContainsReplacedTexts(t *testing.T) {
	whole := readRealScript(t, "userdata.ps1")
	replacements := regexp.MustCompile(`\.Replace\(('[^']+'|"[^"$]+"), ['"]`).FindAllSubmatch(whole.text, -1)
	pattern := regexp.MustCompile(`\[regex\]::Replace\(\$Text, '(\(\?s\)[^']+)', '\$global:access`).FindSubmatch(whole.text)
	if len(replacements) != 5 || pattern == nil {
		t.Fatalf("%d texts are replaced, and the access list by %q", len(replacements), pattern)
	}
	steps := regexp.MustCompile(`(?m)^Invoke-Step ['"](.*?)['"] \d+ \{$`)
	for name, s := range userData(t) {
		for _, replacement := range replacements {
			if text := unquote(string(replacement[1])); !strings.Contains(string(s.text), text) {
				t.Errorf("%s does not have %s", name, text)
			}
		}
		if found := regexp.MustCompile(string(pattern[1])).FindAll(s.text, -1); len(found) != 1 {
			t.Errorf("%s sets the access list %d times", name, len(found))
		}
		calls := 0
		for _, u := range s.uses() {
			if u.name == "Invoke-Step" {
				calls++
			}
		}
		if found := steps.FindAll(s.text, -1); len(found) != calls || calls == 0 {
			t.Errorf("%s has %d steps, of which %d are found", name, calls, len(found))
		}
	}
}

// The user data contains the cmdlets that fail in a test case, and the files and firewall rules that test cases and
// queries name.
func TestUserData_ContainsNamesOfWindowsScripts(t *testing.T) {
	data := string(readScript(t, filepath.Join(scripts, "none.ps1")).text)
	cases := readRealScript(t, "userdata.ps1")
	live := readRealScript(t, "userdata-live.ps1")
	failing := regexp.MustCompile(`foreach \(\$c in ([^)]+)\)`).FindSubmatch(cases.text)
	if failing == nil {
		t.Fatal("no cmdlets fail")
	}
	for cmdlet := range strings.SplitSeq(string(failing[1]), ", ") {
		if !strings.Contains(data, unquote(cmdlet)+" -") {
			t.Errorf("%s is not called", cmdlet)
		}
	}
	for _, name := range []string{"sshd_config", "sshd_config.restart", "administrators_authorized_keys",
		"OpenSSH-Server-In-TCP", "ContainerLogsPort"} {
		if !strings.Contains(data, name) {
			t.Errorf("the user data does not name %s", name)
		}
		for script, s := range map[string]*script{"userdata.ps1": cases, "userdata-live.ps1": live} {
			if !strings.Contains(string(s.text), name) {
				t.Errorf("%s does not name %s", script, name)
			}
		}
	}
	for _, variable := range []string{"User", "PublicKey"} {
		if !regexp.MustCompile(`(?m)^\$` + variable + ` = '[^']+'$`).MatchString(data) {
			t.Errorf("the user data does not set $%s in a line of its own", variable)
		}
	}
	for _, text := range []string{"'PasswordAuthentication no'", `"This machine is not ready`} {
		if !strings.Contains(data, text) {
			t.Errorf("the user data does not have %s, which cases expect", text)
		}
	}
}
