package windows

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Types of a recovery action (SC_ACTION_TYPE).
const (
	actionNone       = 0
	actionRestart    = 1
	actionReboot     = 2
	actionCommand    = 3
	actionOwnRestart = 4
)

var recoveryKinds = map[uint32]host.RecoveryKind{
	actionNone: host.RecoveryNone, actionRestart: host.RecoveryRestart, actionReboot: host.RecoveryReboot,
	actionCommand: host.RecoveryCommand, actionOwnRestart: host.RecoveryOwnRestart,
}

// recoveryAction is the action of the service control manager after one crash (SC_ACTION).
type recoveryAction struct {
	kind  uint32
	delay uint32 // milliseconds
}

// recovery is the reaction of the service control manager to crashes (SERVICE_FAILURE_ACTIONS and
// SERVICE_FAILURE_ACTIONS_FLAG).
type recovery struct {
	actions                []recoveryAction
	resetPeriod            uint32 // seconds
	command, rebootMessage string
	afterErrors            bool
}

var (
	errDelay = errors.New("a delay or period before a restart is out of Windows' range (whole milliseconds or seconds of 32 bits)")
	errKind  = errors.New("unknown recovery action")
)

// encodeRecovery returns the recovery of a configuration. Windows repeats the last action, like RestartDelays.
func encodeRecovery(config host.ServiceConfig) (recovery, error) {
	reset, err := countUnits(config.ResetPeriod, time.Second)
	if err != nil {
		return recovery{}, fmt.Errorf("reset period %s: %w", config.ResetPeriod, err)
	}
	full := config.FullRecovery()
	r := recovery{
		resetPeriod: reset, command: full.Command, rebootMessage: full.RebootMessage, afterErrors: full.AfterErrors,
	}
	for _, action := range full.Actions {
		kind, err := encodeKind(action.Kind)
		if err != nil {
			return recovery{}, err
		}
		milliseconds, err := countUnits(action.Delay, time.Millisecond)
		if err != nil {
			return recovery{}, fmt.Errorf("delay %s of recovery action %s: %w", action.Delay, action.Kind, err)
		}
		r.actions = append(r.actions, recoveryAction{kind, milliseconds})
	}
	return r, nil
}

// decodeRecovery sets the recovery of a configuration.
func decodeRecovery(r recovery, config *host.ServiceConfig) {
	full := host.Recovery{Command: r.command, RebootMessage: r.rebootMessage, AfterErrors: r.afterErrors}
	for _, action := range r.actions {
		full.Actions = append(full.Actions,
			host.RecoveryAction{Kind: decodeKind(action.kind), Delay: time.Duration(action.delay) * time.Millisecond})
	}
	config.SetRecovery(full)
	config.ResetPeriod = time.Duration(r.resetPeriod) * time.Second
}

// hasReboot reports whether an action restarts the machine.
func (r recovery) hasReboot() bool {
	return slices.ContainsFunc(r.actions, func(action recoveryAction) bool { return action.kind == actionReboot })
}

// decodeKind returns the kind for a type, or the number for a type of a later Windows.
func decodeKind(kind uint32) host.RecoveryKind {
	if known, ok := recoveryKinds[kind]; ok {
		return known
	}
	return host.RecoveryKind(strconv.FormatUint(uint64(kind), 10))
}

func encodeKind(kind host.RecoveryKind) (uint32, error) {
	for number, known := range recoveryKinds {
		if known == kind {
			return number, nil
		}
	}
	number, err := strconv.ParseUint(string(kind), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", errKind, kind)
	}
	return uint32(number), nil
}

func countUnits(d, unit time.Duration) (uint32, error) {
	if d < 0 || d%unit != 0 || d/unit > math.MaxUint32 {
		return 0, errDelay
	}
	return uint32(d / unit), nil
}
