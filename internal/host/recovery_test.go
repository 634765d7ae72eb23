package host

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecovery_RecordedCompletely(t *testing.T) {
	restart := RecoveryAction{Kind: RecoveryRestart, Delay: time.Second}
	for name, c := range map[string]struct {
		recovery Recovery
		delays   []time.Duration
		simple   bool // RestartDelays are sufficient
	}{
		"no actions":                       {Recovery{}, nil, true},
		"restarts, also after errors":      {Recovery{Actions: []RecoveryAction{restart}, AfterErrors: true}, []time.Duration{time.Second}, true},
		"restarts after real crashes only": {Recovery{Actions: []RecoveryAction{restart}}, []time.Duration{time.Second}, false},
		"the flag without actions":         {Recovery{AfterErrors: true}, nil, false},
		"a command that no action runs":    {Recovery{Actions: []RecoveryAction{restart}, AfterErrors: true, Command: "x"}, []time.Duration{time.Second}, false},
		"a message for no reboot":          {Recovery{RebootMessage: "x"}, nil, false},
		"no action, after a delay": {Recovery{Actions: []RecoveryAction{{Kind: RecoveryNone, Delay: time.Hour}}, AfterErrors: true},
			[]time.Duration{noRestart}, false},
		"each kind of action": {Recovery{Actions: []RecoveryAction{restart, {RecoveryReboot, time.Minute}, {RecoveryCommand, 0}, {RecoveryNone, 0},
			{RecoveryOwnRestart, time.Hour}, {"7", 1}}, Command: "run.exe", RebootMessage: "again", AfterErrors: true},
			[]time.Duration{time.Second, noRestart, noRestart, noRestart, noRestart, noRestart}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := ServiceConfig{Name: "s", RestartDelays: []time.Duration{time.Hour}, Recovery: &Recovery{Command: "former"}}
			config.SetRecovery(c.recovery)
			if diff := cmp.Diff(c.delays, config.RestartDelays); diff != "" || (config.Recovery == nil) != c.simple {
				t.Errorf("kept as %+v; delays (-want +got):\n%s", config.Recovery, diff)
			}
			data, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			var read ServiceConfig
			if err := json.Unmarshal(data, &read); err != nil {
				t.Fatal(err)
			}
			if !read.FullRecovery().Equal(c.recovery) {
				t.Errorf("%s is read as %+v, want %+v", data, read.FullRecovery(), c.recovery)
			}
		})
	}
}

func TestRecovery_EarlierRecordsHaveOnlyRestartDelays(t *testing.T) {
	var record ServiceConfig
	if err := json.Unmarshal([]byte(`{"name":"s","restartDelays":[1000000000,-1],"resetPeriod":60000000000}`), &record); err != nil {
		t.Fatal(err)
	}
	want := Recovery{Actions: []RecoveryAction{{RecoveryRestart, time.Second}, {RecoveryNone, 0}}, AfterErrors: true}
	if diff := cmp.Diff(want, record.FullRecovery()); diff != "" {
		t.Errorf("recovery (-want +got):\n%s", diff)
	}
	restored := ServiceConfig{}
	restored.SetRecovery(want) // the configuration read from the service after its restoration
	if !restored.FullRecovery().Equal(record.FullRecovery()) {
		t.Errorf("restored to %+v", restored.FullRecovery())
	}
}
