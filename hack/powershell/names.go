package main

import (
	"slices"
	"strings"
)

// automatic lists the automatic variables of PowerShell.
var automatic = strings.Fields("_ args ConfirmPreference Error ErrorActionPreference false HOME Host input LASTEXITCODE Matches MyInvocation null " +
	"ProgressPreference PSBoundParameters PSCmdlet PSCommandPath PSHOME PSItem PSScriptRoot PSVersionTable PWD this true VerbosePreference WarningPreference")

// environment lists the environment variables that scripts may read.
var environment = strings.Fields("COMPUTERNAME ProgramData ProgramFiles SystemDrive SystemRoot TEMP")

// checkVariables reports variables that are never set, which PowerShell silently treats as empty. It does not
// consider scopes.
func (s *script) checkVariables() {
	set := slices.Clone(automatic)
	for _, n := range s.root.all("left_assignment_expression", "script_parameter") {
		if v := n.all("variable"); len(v) > 0 {
			set = append(set, variableName(s.of(v[0])))
		}
	}
	for _, n := range s.root.all("foreach_statement") {
		set = append(set, variableName(s.of(n.child("variable"))))
	}
	for _, n := range s.root.all("variable") {
		name := variableName(s.of(n))
		known := set
		if rest, ok := strings.CutPrefix(name, "env:"); ok {
			name, known = rest, environment
		}
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			s.fault(n, "nothing sets the variable %s", s.of(n))
		}
	}
}

// variableName returns the name in $name, ${name} and @name.
func variableName(text string) string {
	return strings.Trim(strings.TrimLeft(text, "$@"), "{}")
}

// types maps the .NET Framework 4 types that scripts may use to the permitted static and instance members.
var types = map[string]string{
	"byte[]": "", "int": "", "regex": "Replace", "scriptblock": "", "string": "",
	"Collections.Generic.List[string]":            "Add Count",
	"Convert":                                     "ToBase64String",
	"DateTime":                                    "UtcNow ToString",
	"Diagnostics.Stopwatch":                       "StartNew Elapsed TotalMinutes",
	"Globalization.CultureInfo":                   "InvariantCulture",
	"IO.File":                                     "ReadAllText WriteAllText AppendAllText Exists Delete SetAccessControl",
	"Security.AccessControl.FileSecurity":         "SetOwner SetAccessRuleProtection AddAccessRule",
	"Security.AccessControl.FileSystemAccessRule": "",
	"Security.Cryptography.RandomNumberGenerator": "Create GetBytes",
	"Security.Principal.SecurityIdentifier":       "",
	"Security.Principal.WindowsIdentity":          "GetCurrent Name",
	"StringComparison":                            "Ordinal",
	"System.Management.Automation.ErrorRecord":    "Exception Message",
	"System.String":                               "EndsWith StartsWith Trim",
	"Microsoft.PowerShell.Commands.LocalUser":     "Enabled",
}

// checkTypes compares the used types and members with the table. The type of an object is not known, so the
// instance members of all types are permitted.
func (s *script) checkTypes() {
	var members []string
	for _, of := range types {
		members = append(members, strings.Fields(of)...)
	}
	for _, n := range s.root.all("type_literal") {
		if name := literalType(s.of(n)); !hasType(name) {
			s.fault(n, "the table of types has no type %s", name)
		}
	}
	for _, u := range s.uses() {
		if u.name == "New-Object" && len(u.positional) > 0 && !hasType(strings.Trim(u.positional[0], "'")) {
			s.fault(u.at, "the table of types has no type %s", u.positional[0])
		}
	}
	for _, n := range s.root.all("invokation_expression", "member_access") {
		name := n.child("member_name")
		if name == nil {
			continue
		}
		known := members
		if owner := n.child("type_literal"); owner != nil {
			known = strings.Fields(types[literalType(s.of(owner))])
		}
		if !slices.Contains(known, s.of(name)) {
			s.fault(n, "in the table of types, %s has no %s", firstLine(s.of(n.children[0])), s.of(name))
		}
	}
}

// literalType returns the name in [name].
func literalType(text string) string { return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]") }

func hasType(name string) bool { _, ok := types[name]; return ok }
