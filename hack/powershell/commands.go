package main

import (
	"slices"
	"strings"
)

// cmdlet describes a command according to the documentation of Windows.
type cmdlet struct {
	// parameters lists the parameters with a value: "Name", or with the permitted values: "Action=Allow|Block".
	parameters string
	// switches lists the parameters without a value.
	switches string
	// positional is the maximum number of values without parameter name.
	positional int
	// needs lists the required parameters.
	needs []string
	// ofModule is true for a function of a module, which does not see the script's $ErrorActionPreference.
	ofModule bool
}

// use is a command in a script, with its named and positional parameter values.
type use struct {
	at         *node
	name       string
	parameters map[string]string
	positional []string
}

// uses returns all commands of the script that are called by name.
func (s *script) uses() []use {
	var list []use
	for _, n := range s.root.all("command") {
		name := n.child("command_name")
		if name == nil {
			continue // & $block
		}
		u := use{at: n, name: s.of(name), parameters: map[string]string{}}
		var open string
		if elements := n.child("command_elements"); elements != nil {
			for _, e := range elements.children {
				switch {
				case e.kind == "command_parameter":
					open = strings.TrimPrefix(s.of(e), "-")
					u.parameters[open] = ""
				case e.kind == "command_argument_sep" || e.kind == "redirection":
				case open != "" && !s.isSwitch(u.name, open):
					u.parameters[open], open = s.of(e), ""
				default:
					u.positional, open = append(u.positional, s.of(e)), ""
				}
			}
		}
		list = append(list, u)
	}
	return list
}

// command returns the description of a command: a cmdlet of Windows, or a function of the script.
func (s *script) command(name string) (cmdlet, bool) {
	for known, c := range cmdlets {
		if strings.EqualFold(known, name) {
			return c, known == name // in the spelling of the documentation
		}
	}
	for _, function := range s.root.all("function_statement") {
		if strings.EqualFold(s.of(function.child("function_name")), name) {
			var parameters []string
			for _, parameter := range function.all("script_parameter") {
				parameters = append(parameters, strings.TrimPrefix(s.of(parameter.child("variable")), "$"))
			}
			return cmdlet{parameters: strings.Join(parameters, " "), positional: len(parameters)}, true
		}
	}
	return cmdlet{}, false
}

func (s *script) isSwitch(command, parameter string) bool {
	c, _ := s.command(command)
	return slices.ContainsFunc(strings.Fields(c.switches+" "+commonSwitches), func(name string) bool {
		return strings.EqualFold(name, parameter)
	})
}

// checkCommands compares each command with its documentation. PowerShell would also accept an abbreviated parameter
// name; the check requires the full name.
func (s *script) checkCommands() {
	for _, u := range s.uses() {
		c, known := s.command(u.name)
		if !known {
			s.fault(u.at, "the table of commands has no command %s", u.name)
			continue
		}
		for name, value := range u.parameters {
			s.checkParameter(u, c, name, value)
		}
		if len(u.positional) > c.positional {
			s.fault(u.at, "%s accepts %d positional values, not %q", u.name, c.positional, u.positional)
		}
		for _, name := range c.needs {
			if _, there := u.parameters[name]; !there {
				s.fault(u.at, "%s needs the parameter -%s", u.name, name)
			}
		}
	}
}

func (s *script) checkParameter(u use, c cmdlet, name, value string) {
	if slices.Contains(strings.Fields(c.switches+" "+commonSwitches), name) {
		return
	}
	for _, parameter := range strings.Fields(c.parameters + " " + commonParameters) {
		known, values, closed := strings.Cut(parameter, "=")
		if known != name {
			continue
		}
		literal := strings.Trim(value, `'"`)
		switch {
		case value == "":
			s.fault(u.at, "%s -%s needs a value", u.name, name)
		case closed && !strings.HasPrefix(value, "$") && !slices.Contains(strings.Split(values, "|"), literal):
			s.fault(u.at, "%s -%s accepts %s, not %s", u.name, name, strings.ReplaceAll(values, "|", ", "), value)
		}
		return
	}
	s.fault(u.at, "%s has no parameter -%s", u.name, name)
}
