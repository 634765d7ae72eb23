package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loginStatements contains the statements that enable the operator's login as an administrator, by the required
// step.
var loginStatements = map[string][]string{
	"the public key is authorized": {
		`$file = Join-Path $env:ProgramData 'ssh\administrators_authorized_keys'`,
		"[IO.File]::AppendAllText($file, \"$PublicKey`r`n\")",
		"$administrators = New-Object Security.Principal.SecurityIdentifier 'S-1-5-32-544'",
		"$system = New-Object Security.Principal.SecurityIdentifier 'S-1-5-18'",
		"$access = New-Object Security.AccessControl.FileSecurity",
		"$access.SetOwner($administrators)",
		"$access.SetAccessRuleProtection($true, $false)",
		"$access.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule $group, 'FullControl', 'Allow'))",
		"[IO.File]::SetAccessControl($file, $access)",
	},
	"account $User is enabled": {"Enable-LocalUser -Name $User"},
}

// missingLogin returns the statements of loginStatements that a script lacks or has in another order.
func missingLogin(s *script) (missing []string) {
	for name, want := range loginStatements {
		var got []string
		for _, u := range s.uses() {
			if u.name == "Invoke-Step" && len(u.positional) > 0 && strings.Trim(u.positional[0], `'"`) == name {
				for _, n := range u.at.all("assignment_expression", "invokation_expression", "command") {
					got = append(got, s.of(n))
				}
			}
		}
		for _, statement := range want {
			i := slices.Index(got, statement)
			if i < 0 {
				missing = append(missing, name+": "+statement)
				continue
			}
			got = got[i+1:]
		}
	}
	return missing
}

//
func TestCheck_MissingOperatorLoginDetected(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(scripts, "aws.ps1"))
	must(t, err)
	whole := string(content)
	from := strings.Index(whole, "Invoke-Step 'the public key is authorized'")
	to := strings.Index(whole, "# On Windows Server 2025 this rule applies")
	for name, c := range map[string]struct{ old, changed string }{
		"the step with the key is cut":             {whole[from:to], ""},
		"the key is not written":                   {"[IO.File]::AppendAllText($file, \"$PublicKey`r`n\")", ""},
		"the key is written to another file":       {`'ssh\administrators_authorized_keys'`, `'ssh\authorized_keys'`},
		"the file keeps its former access":         {"    [IO.File]::SetAccessControl($file, $access)\n", ""},
		"the file inherits access from its folder": {"SetAccessRuleProtection($true, $false)", "SetAccessRuleProtection($false, $false)"},
		"users own the file":                       {"'S-1-5-32-544'", "'S-1-5-32-545'"},
		"the account stays disabled":               {"        Enable-LocalUser -Name $User\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(whole, c.old) != 1 {
				t.Fatalf("%q is not in the script exactly once", c.old)
			}
			s, err := grammar.read(t.Context(), []byte(strings.Replace(whole, c.old, c.changed, 1)))
			must(t, err)
			if len(missingLogin(s)) == 0 {
				t.Error("nothing is missed")
			}
		})
	}
}
