package hosttest

import (
	"strings"
)

// listVariables returns the machine's variables with the name of the contract's variable in any case.
func (s *suite) listVariables() map[string]string {
	values, err := s.Environment.Get(s.ctx)
	s.requireNoError(err)
	found := map[string]string{}
	for name, value := range values {
		if strings.EqualFold(name, variable) {
			found[name] = value
		}
	}
	return found
}

func environmentBehaviors() []Behavior {
	set := func(s *suite, name, value string) { s.requireNoError(s.Environment.Set(s.ctx, name, value)) }
	return []Behavior{
		{"Environment.Get", "the machine has a Path", func(s *suite) {
			values, err := s.Environment.Get(s.ctx)
			s.requireNoError(err)
			for name, value := range values {
				if strings.EqualFold(name, "Path") && value != "" {
					return
				}
			}
			s.Errorf("variables without Path: %v", values)
		}},
		{"Environment.Set", "a variable can be set repeatedly, and its name is case-insensitive", func(s *suite) {
			set(s, variable, "one")
			set(s, strings.ToLower(variable), "two")
			found := s.listVariables()
			expectEqual(s, "variables of that name", len(found), 1)
			for _, value := range found {
				expectEqual(s, "value", value, "two")
			}
		}},
		{"Environment.Set", "a value is preserved literally", func(s *suite) {
			for _, value := range []string{`C:\a b;C:\c=d\`, `"quoted"`, "Grüße, 日本", ".svc,10.0.0.0/16,*.example.com"} {
				set(s, variable, value)
				expectEqual(s, "value", s.listVariables()[variable], value)
			}
		}},
		{"Environment.Set", "other variables are unchanged", func(s *suite) {
			before, err := s.Environment.Get(s.ctx)
			s.requireNoError(err)
			set(s, variable, "one")
			after, err := s.Environment.Get(s.ctx)
			s.requireNoError(err)
			expectEqual(s, "number of variables", len(after), len(before)+1)
			for name, value := range before {
				expectEqual(s, name, after[name], value)
			}
		}},
		{"Environment.Set", "an invalid name is rejected", func(s *suite) {
			s.expectAnyError("the empty name", s.Environment.Set(s.ctx, "", "x"))
			s.expectAnyError("an equals sign", s.Environment.Set(s.ctx, "A=B", "x"))
		}},
		{"Environment.Unset", "a variable can be removed, and a missing variable is no error", func(s *suite) {
			set(s, variable, "one")
			for range 2 {
				s.requireNoError(s.Environment.Unset(s.ctx, strings.ToLower(variable)))
				expectEqual(s, "variables left", len(s.listVariables()), 0)
			}
		}},
	}
}
