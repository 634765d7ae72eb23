package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// recover does the recovery action after a crash of the service. As on Windows a stop in the meantime does not call it
// off: only deleting or disabling the service does, or starting it before.
func (m *Machine) recover(s *service) {
	now := m.clock.Now()
	delay, restart := s.nextDelay(now)
	s.lastCrash = now
	s.crashes++
	if !restart {
		return
	}
	// The timer is there before anyone can see that the service crashed.
	var timer clock.Timer
	if delay > 0 {
		timer = m.clock.NewTimer(delay)
	}
	m.programs.Add(1)
	go m.restart(m.up, s, timer)
}

// nextDelay is how long to wait before the restart; false when there is none.
func (s *service) nextDelay(now time.Time) (time.Duration, bool) {
	delays := s.config.RestartDelays
	if len(delays) == 0 {
		return 0, false
	}
	if now.Sub(s.lastCrash) >= s.config.ResetPeriod {
		s.crashes = 0
	}
	return delays[min(s.crashes, len(delays)-1)], true
}

func (m *Machine) restart(up context.Context, s *service, timer clock.Timer) {
	defer m.programs.Done()
	if timer != nil {
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-up.Done():
			return
		}
	}
	m.lock()
	name := s.config.Name
	wanted := up.Err() == nil && m.services[key(name)] == s && s.state == host.ServiceStopped && !s.deleted &&
		s.config.StartType != host.StartDisabled
	switch {
	case wanted:
		m.journal.Append(KindService, "restart "+name+" after a crash", 0)
	case up.Err() == nil:
		m.journal.Append(KindService, "no restart of "+name+", which was changed after its crash", 0)
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
	if errors.As(err, &failedStart{}) { // its process did start, and crashed again
		m.lock()
		defer m.unlock()
		if up.Err() == nil {
			m.recover(s)
		}
	}
}
