package hosttest

import (
	"strings"
)

// variables returns the machine's variables with the name of the contract's variable in any case.
func (s *suite) variables() map[string]string {
	values, err := s.Environment.Get(s.ctx)
	s.must(err)
	found := map[string]string{}
	for name, value := range values {
		if strings.EqualFold(name, variable) {
			found[name] = value
		}
	}
	return found
}

func environmentBehaviors() []Behavior {
	set := func(s *suite, name, value string) { s.must(s.Environment.Set(s.ctx, name, value)) }
	return []Behavior{
		{"Environment.Get", "the machine has a Path", func(s *suite) {
			values, err := s.Environment.Get(s.ctx)
			s.must(err)
			for name, value := range values {
				if strings.EqualFold(name, "Path") && value != "" {
					return
				}
			}
			s.Errorf("variables without Path: %v", values)
		}},
		{"Environment.Set", "a variable is set and set anew, whatever the case of its name", func(s *suite) {
			set(s, variable, "one")
			set(s, strings.ToLower(variable), "two")
			found := s.variables()
			is(s, "variables of that name", len(found), 1)
			for _, value := range found {
				is(s, "value", value, "two")
			}
		}},
		{"Environment.Set", "a value is kept to the letter", func(s *suite) {
			for _, value := range []string{`C:\a b;C:\c=d\`, `"quoted"`, "Grüße, 日本", ".svc,10.0.0.0/16,*.example.com"} {
				set(s, variable, value)
				is(s, "value", s.variables()[variable], value)
			}
		}},
		{"Environment.Set", "other variables stay", func(s *suite) {
			before, err := s.Environment.Get(s.ctx)
			s.must(err)
			set(s, variable, "one")
			after, err := s.Environment.Get(s.ctx)
			s.must(err)
			is(s, "number of variables", len(after), len(before)+1)
			for name, value := range before {
				is(s, name, after[name], value)
			}
		}},
		{"Environment.Set", "a name that no variable can have is refused", func(s *suite) {
			s.refused("the empty name", s.Environment.Set(s.ctx, "", "x"))
			s.refused("an equals sign", s.Environment.Set(s.ctx, "A=B", "x"))
		}},
		{"Environment.Unset", "a variable is taken away, and nothing is no error", func(s *suite) {
			set(s, variable, "one")
			for range 2 {
				s.must(s.Environment.Unset(s.ctx, strings.ToLower(variable)))
				is(s, "variables left", len(s.variables()), 0)
			}
		}},
	}
}
