package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Codes of WMI and firewall failures in the middle of a list.
var listFailures = map[string]int{
	"access denied": codeWMIAccessDenied, "Defender was stopped": codeServiceStopped, "invalid class": 0x80041010,
}

func TestFirewall_FailedListIsNotShorterList(t *testing.T) {
	requireSimulatedParts(t)
	rule := host.FirewallRule{Name: "wmco-list-test", DisplayName: "List test", Protocol: "TCP", LocalPort: 47004,
		Enabled: true, Allow: true}
	requireNoError(t, firewall{}.SetRule(t.Context(), rule))
	t.Cleanup(func() { _ = firewall{}.DeleteRule(context.WithoutCancel(t.Context()), rule.Name) })
	before, err := firewall{}.Rules(t.Context())
	requireNoError(t, err)
	for name, code := range listFailures {
		for at := range len(before) + 1 {
			t.Run(fmt.Sprintf("%s after %d rules", name, at), func(t *testing.T) {
				mend := setFault(t, "firewall", map[string]any{"FailAt": at, "FailCode": code})
				if list, err := (firewall{}).Rules(t.Context()); err == nil || !strings.Contains(err.Error(), hexCode(code)) {
					t.Errorf("listed %d of %d rules, error %v", len(list), len(before), err)
				}
				if err := (firewall{}).DeleteRule(t.Context(), rule.Name); err == nil || errors.Is(err, host.ErrNotExist) {
					t.Errorf("DeleteRule returns %v", err)
				}
				other := rule
				other.LocalPort++
				if err := (firewall{}).SetRule(t.Context(), other); err == nil {
					t.Error("SetRule reports success")
				}
				mend()
				after, err := firewall{}.Rules(t.Context())
				requireNoError(t, err)
				if !slices.Equal(before, after) {
					t.Errorf("before %v\nafter %v", before, after)
				}
			})
		}
	}
}

//
func TestExclusions_UnreadableAfterChangeIsNotRefusal(t *testing.T) {
	requireSimulatedParts(t)
	startDefender(t)
	exclusion := host.Exclusion{Kind: host.ExcludeProcess, Value: `C:\wmco-list-test\containerd.exe`}
	t.Cleanup(func() { _ = antivirus{}.RemoveExclusion(context.WithoutCancel(t.Context()), exclusion) })
	for name, code := range listFailures {
		t.Run(name, func(t *testing.T) {
			mend := setFault(t, "wmi", map[string]any{"Skip": 1, "FailCode": code})
			err := antivirus{}.AddExclusion(t.Context(), exclusion)
			if err == nil || !strings.Contains(err.Error(), hexCode(code)) {
				t.Errorf("got error %v", err)
			}
			// The caller treats these errors as evidence that nothing has changed.
			if errors.Is(err, host.ErrRefused) || errors.Is(err, host.ErrNoAntivirus) {
				t.Errorf("%v reads as a refusal, but the exclusion was added", err)
			}
			mend()
			list, err := antivirus{}.Exclusions(t.Context())
			requireNoError(t, err)
			if !slices.Equal(list, []host.Exclusion{exclusion}) {
				t.Errorf("the exclusions are %v", list)
			}
			setFault(t, "wmi", map[string]any{"ReturnCode": codeDefenderDenied})
			requireError(t, antivirus{}.RemoveExclusion(t.Context(), exclusion), host.ErrRefused)
			setFault(t, "wmi", nil)
			requireNoError(t, antivirus{}.RemoveExclusion(t.Context(), exclusion))
		})
	}
}
