//go:build windows

package windows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-ole/go-ole"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFirewall(t *testing.T) {
	rule := host.FirewallRule{Name: "wmco-firewall-test", DisplayName: "Firewall test", Protocol: "TCP", LocalPort: 47003,
		Enabled: true, Allow: true}
	before, err := firewall{}.Rules(t.Context())
	if err != nil {
		t.Skipf("NOT SHOWN HERE: the firewall (%v)", err)
	}
	if err := (firewall{}).SetRule(t.Context(), rule); err != nil {
		t.Skipf("NOT SHOWN HERE: the firewall (%v)", err)
	}
	t.Cleanup(func() { _ = firewall{}.DeleteRule(t.Context(), rule.Name) })
	find := func(t *testing.T) []host.FirewallRule {
		t.Helper()
		rules, err := firewall{}.Rules(t.Context())
		requireNoError(t, err)
		return slices.DeleteFunc(rules, func(r host.FirewallRule) bool { return !strings.EqualFold(r.Name, rule.Name) })
	}
	t.Run("a rule that is set anew under another case of its name is still one", func(t *testing.T) {
		rule.Name, rule.Enabled, rule.Allow, rule.Protocol = strings.ToUpper(rule.Name), false, false, "UDP"
		requireNoError(t, firewall{}.SetRule(t.Context(), rule))
		if got := find(t); len(got) != 1 || got[0] != rule {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a deleted rule is gone, and the others are as they were", func(t *testing.T) {
		requireNoError(t, firewall{}.DeleteRule(t.Context(), strings.ToLower(rule.Name)))
		requireError(t, firewall{}.DeleteRule(t.Context(), rule.Name), host.ErrNotExist)
		after, err := firewall{}.Rules(t.Context())
		requireNoError(t, err)
		if !slices.Equal(before, after) {
			t.Errorf("before %v\nafter %v", before, after)
		}
	})
	t.Run("an outbound rule of the same name stays", func(t *testing.T) {
		remains, err := addOutboundRule(t, rule.Name)
		requireNoError(t, err)
		for _, change := range []func() error{
			func() error { return firewall{}.SetRule(t.Context(), rule) },
			func() error { return firewall{}.SetRule(t.Context(), rule) }, // also removes the previous rule
			func() error { return firewall{}.DeleteRule(t.Context(), rule.Name) },
		} {
			requireNoError(t, change())
			if there, err := remains(); err != nil || !there {
				t.Errorf("it is there: %t, %v", there, err)
			}
		}
		requireError(t, firewall{}.DeleteRule(t.Context(), rule.Name), host.ErrNotExist)
		if got := find(t); len(got) != 0 {
			t.Errorf("left: %+v", got)
		}
	})
	t.Run("a rule whose removal was interrupted is listed, replaced and removed by its own name", func(t *testing.T) {
		for _, change := range []func() error{
			func() error { return firewall{}.SetRule(t.Context(), rule) },
			func() error { return firewall{}.DeleteRule(t.Context(), rule.Name) },
		} {
			interrupted := rule
			interrupted.Name, interrupted.LocalPort = removalName(strings.ToLower(rule.Name), "{A}"), 47004
			requireNoError(t, firewall{}.SetRule(t.Context(), interrupted))
			listed := slices.ContainsFunc(find(t), func(r host.FirewallRule) bool { return r.LocalPort == interrupted.LocalPort })
			if !listed {
				t.Errorf("it is not listed as %s: %+v", rule.Name, find(t))
			}
			requireNoError(t, change())
			if got := find(t); len(got) > 1 || len(got) == 1 && got[0] != rule {
				t.Errorf("left: %+v", got)
			}
		}
	})
}

// addOutboundRule adds an outbound rule until the end of the test, and returns a function that reports whether the
// rule exists.
func addOutboundRule(t *testing.T, name string) (remains func() (bool, error), err error) {
	each := func(do func(rules, rule *ole.IDispatch) error) error {
		_, err := runInCOM(context.Background(), func() (struct{}, error) {
			rules, err := openFirewall()
			if err != nil {
				return struct{}{}, err
			}
			defer rules.Release()
			var found []*ole.IDispatch
			err = eachRule(rules, func(rule *ole.IDispatch) error {
				r := propertyReader{object: rule}
				if r.readString("Name") == name && r.readInt("Direction") != firewallInbound {
					rule.AddRef()
					found = append(found, rule)
				}
				return r.err
			})
			for _, rule := range found {
				err = errors.Join(err, do(rules, rule))
				rule.Release()
			}
			return struct{}{}, err
		})
		return err
	}
	t.Cleanup(func() {
		requireNoError(t, each(func(rules, rule *ole.IDispatch) error { return removeRule(rules, rule, name) }))
	})
	_, err = runInCOM(t.Context(), func() (struct{}, error) {
		rules, err := openFirewall()
		if err != nil {
			return struct{}{}, err
		}
		defer rules.Release()
		rule, err := createObject("{2C5BC43E-3369-4C33-AB0C-BE9469677AF4}")
		if err != nil {
			return struct{}{}, err
		}
		defer rule.Release()
		for property, value := range map[string]any{"Name": name, "Direction": int32(2)} {
			if _, err := rule.PutProperty(property, value); err != nil {
				return struct{}{}, err
			}
		}
		_, err = rules.CallMethod("Add", rule)
		return struct{}{}, err
	})
	return func() (there bool, err error) {
		err = each(func(_, _ *ole.IDispatch) error { there = true; return nil })
		return there, err
	}, err
}
