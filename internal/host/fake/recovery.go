package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// recoverService performs the recovery action after a crash of the service. As on Windows, a stop in the meantime
// does not cancel a restart. Only deleting, disabling or starting the service does.
func (m *Machine) recoverService(s *service) {
	now := m.clock.Now()
	action := s.nextAction(now)
	s.lastCrash = now
	s.crashes++
	if action.Kind == host.RecoveryNone {
		return
	}
	// The timer is created before other goroutines can observe the crash.
	var timer clock.Timer
	if action.Delay > 0 {
		timer = m.clock.NewTimer(action.Delay)
	}
	m.programs.Add(1)
	go m.performRecovery(m.up, s, action.Kind, timer)
}

// nextAction returns the action after the current crash.
func (s *service) nextAction(now time.Time) host.RecoveryAction {
	actions := s.config.FullRecovery().Actions
	if len(actions) == 0 {
		return host.RecoveryAction{Kind: host.RecoveryNone}
	}
	if now.Sub(s.lastCrash) >= s.config.ResetPeriod {
		s.crashes = 0
	}
	return actions[min(s.crashes, len(actions)-1)]
}

// performRecovery performs an action after its delay. The command of an action is recorded but not run.
func (m *Machine) performRecovery(up context.Context, s *service, kind host.RecoveryKind, timer clock.Timer) {
	defer m.programs.Done()
	if timer != nil {
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-up.Done():
			return
		}
	}
	switch kind {
	case host.RecoveryReboot, host.RecoveryCommand:
		m.lock()
		defer m.unlock()
		recovery := s.config.FullRecovery()
		switch {
		case up.Err() != nil:
		case kind == host.RecoveryCommand:
			m.journal.Append(KindExec, recovery.Command, 0)
		default:
			m.journal.Append(KindReboot, recovery.RebootMessage, 0)
			m.startReboot()
		}
	default:
		m.restartService(up, s)
	}
}

func (m *Machine) restartService(up context.Context, s *service) {
	m.lock()
	name := s.config.Name
	wanted := up.Err() == nil && m.services[foldCase(name)] == s && s.state == host.ServiceStopped && !s.deleted &&
		s.config.StartType != host.StartDisabled
	switch {
	case wanted:
		m.journal.Append(KindService, "restart "+name+" after a crash", 0)
	case up.Err() == nil:
		m.journal.Append(KindService, "no restart of "+name+": the configuration changed after the crash", 0)
	}
	m.unlock()
	if !wanted {
		return
	}
	err := m.startService(up, name, nil)
	if err == nil || up.Err() != nil {
		return
	}
	m.journal.Append(KindService, fmt.Sprintf("%s does not start after a crash: %v", name, err), 0)
	if errors.As(err, &failedStart{}) { // the process started and crashed again
		m.lock()
		defer m.unlock()
		if up.Err() == nil {
			m.recoverService(s)
		}
	}
}
