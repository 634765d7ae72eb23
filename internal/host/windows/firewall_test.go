//go:build windows

package windows

import (
	"slices"
	"strings"
	"testing"

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
		must(t, err)
		return slices.DeleteFunc(rules, func(r host.FirewallRule) bool { return !strings.EqualFold(r.Name, rule.Name) })
	}
	t.Run("a rule that is set anew under another case of its name is still one", func(t *testing.T) {
		rule.Name, rule.Enabled, rule.Allow, rule.Protocol = strings.ToUpper(rule.Name), false, false, "UDP"
		must(t, firewall{}.SetRule(t.Context(), rule))
		if got := find(t); len(got) != 1 || got[0] != rule {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a deleted rule is gone, and the others are as they were", func(t *testing.T) {
		must(t, firewall{}.DeleteRule(t.Context(), strings.ToLower(rule.Name)))
		fails(t, firewall{}.DeleteRule(t.Context(), rule.Name), host.ErrNotExist)
		after, err := firewall{}.Rules(t.Context())
		must(t, err)
		if !slices.Equal(before, after) {
			t.Errorf("before %v\nafter %v", before, after)
		}
	})
}
