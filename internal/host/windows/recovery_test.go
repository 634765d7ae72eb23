package windows

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

var compareRecovery = cmp.AllowUnexported(recovery{}, recoveryAction{})

func TestRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		delays []time.Duration
		reset  time.Duration
		want   recovery
	}{
		"a configuration without restarts has no actions": {},
		"each delay is an action, in milliseconds": {
			[]time.Duration{0, 1500 * time.Millisecond, time.Minute}, time.Hour,
			recovery{[]recoveryAction{{actionRestart, 0}, {actionRestart, 1500}, {actionRestart, 60000}}, 3600},
		},
		"what restarts nothing is kept apart from every delay": {
			[]time.Duration{time.Second, noRestart}, time.Minute,
			recovery{[]recoveryAction{{actionRestart, 1000}, {actionNone, 0}}, 60},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encodeRecovery(host.ServiceConfig{RestartDelays: c.delays, ResetPeriod: c.reset})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, compareRecovery); diff != "" {
				t.Errorf("recovery (-want +got):\n%s", diff)
			}
			delays, reset := decodeRecovery(got)
			if diff := cmp.Diff(c.delays, delays); diff != "" || reset != c.reset {
				t.Errorf("read back: reset period %s, delays (-want +got):\n%s", reset, diff)
			}
		})
	}
	t.Run("a reboot or a command is no restart", func(t *testing.T) {
		delays, _ := decodeRecovery(recovery{actions: []recoveryAction{{2, 1000}, {3, 1000}}})
		if diff := cmp.Diff([]time.Duration{noRestart, noRestart}, delays); diff != "" {
			t.Errorf("delays (-want +got):\n%s", diff)
		}
	})
	t.Run("times that Windows cannot keep are refused", func(t *testing.T) {
		for _, config := range []host.ServiceConfig{
			{RestartDelays: []time.Duration{time.Microsecond}},
			{RestartDelays: []time.Duration{-time.Second}},
			{RestartDelays: []time.Duration{50 * 24 * time.Hour}},
			{ResetPeriod: time.Millisecond},
			{ResetPeriod: -time.Second},
		} {
			if _, err := encodeRecovery(config); !errors.Is(err, errDelay) {
				t.Errorf("%v, %v: got %v", config.RestartDelays, config.ResetPeriod, err)
			}
		}
	})
	t.Run("a count that never begins anew is kept", func(t *testing.T) {
		_, reset := decodeRecovery(recovery{resetPeriod: 0xffffffff})
		got, err := encodeRecovery(host.ServiceConfig{ResetPeriod: reset})
		if err != nil || got.resetPeriod != 0xffffffff {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
