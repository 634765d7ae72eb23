package windows

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Types of a recovery action (SC_ACTION_TYPE).
const (
	actionNone    = 0
	actionRestart = 1
)

// noRestart stands among RestartDelays for a recovery action that restarts nothing: none, a reboot or a command. It
// differs from every delay, so that such an action is seen, and is written back as no action.
const noRestart time.Duration = -1

// recoveryAction is what the service control manager does after one crash (SC_ACTION).
type recoveryAction struct {
	kind  uint32
	delay uint32 // milliseconds
}

// recovery is what the service control manager does after crashes (SERVICE_FAILURE_ACTIONS).
type recovery struct {
	actions     []recoveryAction
	resetPeriod uint32 // seconds
}

var errDelay = errors.New("a delay or period before a restart is out of Windows' range (whole milliseconds or seconds of 32 bits)")

// encodeRecovery returns the recovery that a configuration asks for. Windows repeats the last action, as RestartDelays
// say.
func encodeRecovery(config host.ServiceConfig) (recovery, error) {
	reset, err := units(config.ResetPeriod, time.Second)
	if err != nil {
		return recovery{}, fmt.Errorf("reset period %s: %w", config.ResetPeriod, err)
	}
	r := recovery{resetPeriod: reset}
	for _, delay := range config.RestartDelays {
		if delay == noRestart {
			r.actions = append(r.actions, recoveryAction{kind: actionNone})
			continue
		}
		milliseconds, err := units(delay, time.Millisecond)
		if err != nil {
			return recovery{}, fmt.Errorf("restart delay %s: %w", delay, err)
		}
		r.actions = append(r.actions, recoveryAction{actionRestart, milliseconds})
	}
	return r, nil
}

// decodeRecovery tells the delays and the reset period of a recovery.
func decodeRecovery(r recovery) (delays []time.Duration, resetPeriod time.Duration) {
	for _, action := range r.actions {
		delay := noRestart
		if action.kind == actionRestart {
			delay = time.Duration(action.delay) * time.Millisecond
		}
		delays = append(delays, delay)
	}
	return delays, time.Duration(r.resetPeriod) * time.Second
}

func units(d, unit time.Duration) (uint32, error) {
	if d < 0 || d%unit != 0 || d/unit > math.MaxUint32 {
		return 0, errDelay
	}
	return uint32(d / unit), nil
}
