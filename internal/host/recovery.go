package host

import (
	"slices"
	"time"
)

// RecoveryKind is the kind of an action after a crash of a service (SC_ACTION_TYPE).
type RecoveryKind string

// Kinds of actions after a crash. An unknown kind is represented by its number.
const (
	RecoveryNone       RecoveryKind = "None"
	RecoveryRestart    RecoveryKind = "Restart"
	RecoveryReboot     RecoveryKind = "Reboot"
	RecoveryCommand    RecoveryKind = "RunCommand"
	RecoveryOwnRestart RecoveryKind = "OwnRestart"
)

// RecoveryAction is an action after a crash.
type RecoveryAction struct {
	Kind  RecoveryKind  `json:"kind"`
	Delay time.Duration `json:"delay,omitempty"`
}

// Recovery is the complete reaction of Windows to crashes of a service, except for the reset period.
type Recovery struct {
	Actions       []RecoveryAction `json:"actions,omitempty"` // the last action applies to all later crashes
	Command       string           `json:"command,omitempty"`
	RebootMessage string           `json:"rebootMessage,omitempty"`
	// AfterErrors is true if a process that stops with an error also counts as crashed.
	AfterErrors bool `json:"afterErrors,omitempty"`
}

// noRestart is the value in RestartDelays for an action other than a restart. Ledgers of earlier versions of the agent
// contain it without a Recovery.
const noRestart time.Duration = -1

// FullRecovery returns the complete recovery that the configuration requires: Recovery if set, otherwise a restart
// for each of RestartDelays, also after errors. Records of earlier versions of the agent have RestartDelays only.
func (c ServiceConfig) FullRecovery() Recovery {
	if c.Recovery != nil {
		full := *c.Recovery
		full.Actions = slices.Clone(full.Actions)
		return full
	}
	return recoveryFromDelays(c.RestartDelays)
}

func recoveryFromDelays(delays []time.Duration) Recovery {
	recovery := Recovery{AfterErrors: len(delays) > 0}
	for _, delay := range delays {
		action := RecoveryAction{Kind: RecoveryRestart, Delay: delay}
		if delay == noRestart {
			action = RecoveryAction{Kind: RecoveryNone}
		}
		recovery.Actions = append(recovery.Actions, action)
	}
	return recovery
}

// SetRecovery sets RestartDelays and, if these do not express the recovery completely, Recovery.
func (c *ServiceConfig) SetRecovery(recovery Recovery) {
	c.RestartDelays, c.Recovery = nil, nil
	restarts := true
	for _, action := range recovery.Actions {
		delay := action.Delay
		if action.Kind != RecoveryRestart {
			delay, restarts = noRestart, false
		}
		c.RestartDelays = append(c.RestartDelays, delay)
	}
	if !restarts || !recovery.Equal(recoveryFromDelays(c.RestartDelays)) {
		recovery.Actions = slices.Clone(recovery.Actions)
		c.Recovery = &recovery
	}
}

// Equal reports whether two recoveries are the same.
func (r Recovery) Equal(other Recovery) bool {
	return r.Command == other.Command && r.RebootMessage == other.RebootMessage && r.AfterErrors == other.AfterErrors &&
		slices.Equal(r.Actions, other.Actions)
}
