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
	restarts := func(delays ...uint32) recovery {
		r := recovery{afterErrors: true, resetPeriod: 3600}
		for _, delay := range delays {
			r.actions = append(r.actions, recoveryAction{actionRestart, delay})
		}
		return r
	}
	for name, c := range map[string]struct {
		config host.ServiceConfig
		want   recovery
	}{
		"a configuration without restarts has no actions": {},
		"each delay is an action, in milliseconds": {
			host.ServiceConfig{RestartDelays: []time.Duration{0, 1500 * time.Millisecond, time.Minute}, ResetPeriod: time.Hour},
			restarts(0, 1500, 60000),
		},
		"restarts after crashes that are no errors": {
			host.ServiceConfig{RestartDelays: []time.Duration{time.Second}, ResetPeriod: time.Minute,
				Recovery: &host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart, Delay: time.Second}}}},
			recovery{actions: []recoveryAction{{actionRestart, 1000}}, resetPeriod: 60},
		},
		"every kind of action, with its delay, command and message": {
			host.ServiceConfig{RestartDelays: []time.Duration{-1, time.Second, -1, -1, -1, -1}, ResetPeriod: time.Minute,
				Recovery: &host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryNone, Delay: time.Minute},
					{Kind: host.RecoveryRestart, Delay: time.Second}, {Kind: host.RecoveryReboot, Delay: 2 * time.Second},
					{Kind: host.RecoveryCommand, Delay: 3 * time.Second}, {Kind: host.RecoveryOwnRestart}, {Kind: "9"}},
					Command: `C:\a.exe "x"`, RebootMessage: "again"}},
			recovery{actions: []recoveryAction{{actionNone, 60000}, {actionRestart, 1000}, {actionReboot, 2000}, {actionCommand, 3000},
				{actionOwnRestart, 0}, {9, 0}}, resetPeriod: 60, command: `C:\a.exe "x"`, rebootMessage: "again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encodeRecovery(c.config)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, compareRecovery); diff != "" {
				t.Errorf("recovery (-want +got):\n%s", diff)
			}
			var read host.ServiceConfig
			decodeRecovery(got, &read)
			if diff := cmp.Diff(c.config, read); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a negative delay in the record of an earlier version is no action", func(t *testing.T) {
		got, err := encodeRecovery(host.ServiceConfig{RestartDelays: []time.Duration{time.Second, -1}, ResetPeriod: time.Hour})
		want := restarts(1000)
		want.actions = append(want.actions, recoveryAction{})
		if diff := cmp.Diff(want, got, compareRecovery); diff != "" || err != nil {
			t.Errorf("%v; recovery (-want +got):\n%s", err, diff)
		}
	})
	t.Run("only a reboot needs the privilege for it", func(t *testing.T) {
		if restarts(1).hasReboot() || !(recovery{actions: []recoveryAction{{actionRestart, 0}, {actionReboot, 0}}}).hasReboot() {
			t.Error("it is the other way round")
		}
	})
	t.Run("what Windows cannot keep is refused", func(t *testing.T) {
		for _, config := range []host.ServiceConfig{
			{RestartDelays: []time.Duration{time.Microsecond}},
			{RestartDelays: []time.Duration{-time.Second}},
			{RestartDelays: []time.Duration{50 * 24 * time.Hour}},
			{ResetPeriod: time.Millisecond},
			{ResetPeriod: -time.Second},
			{Recovery: &host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryReboot, Delay: -1}}}},
		} {
			if _, err := encodeRecovery(config); !errors.Is(err, errDelay) {
				t.Errorf("%+v: got %v", config, err)
			}
		}
		if _, err := encodeRecovery(host.ServiceConfig{Recovery: &host.Recovery{Actions: []host.RecoveryAction{{Kind: "Explode"}}}}); !errors.Is(err, errKind) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a count that never begins anew is kept", func(t *testing.T) {
		var read host.ServiceConfig
		decodeRecovery(recovery{resetPeriod: 0xffffffff}, &read)
		got, err := encodeRecovery(read)
		if err != nil || got.resetPeriod != 0xffffffff {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
