package fake

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/utils/clock"
)

// ErrPoweredOff is returned while the machine is off or between two boots.
var ErrPoweredOff = errors.New("the machine is powered off")

type powerState int

const (
	powerOff powerState = iota
	powerRestarting
	powerBooting
	powerOn
)

// Boot powers the machine on, starts the automatic services in dependency order and calls the OnBoot hooks. A service
// that fails to start is recorded in the journal and is not an error of Boot. If the machine is already on, booting
// or restarting, Boot waits until it runs.
func (m *Machine) Boot(ctx context.Context) error {
	m.lock()
	if m.power != powerOff {
		m.unlock()
		return m.WaitFor(ctx, (*Machine).Running)
	}
	boot, up := m.begin()
	m.unlock()
	m.finish(up, boot)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("boot %s: %w", m.options.Name, err)
	}
	return nil
}

// begin starts a boot and applies pending changes.
func (m *Machine) begin() (boot int, up context.Context) {
	m.boots++
	m.power = powerBooting
	if m.down != nil {
		m.down()
	}
	m.up, m.down = context.WithCancel(context.Background())
	m.bootTime = m.clock.Now()
	m.bootID = identifier("boot", m.options.System.MachineID, m.options.Name, strconv.Itoa(m.boots), m.bootTime.String())
	if m.pendingName != "" {
		m.journal.Append(KindHostName, m.pendingName+" is in force", 0)
		m.name, m.pendingName = m.pendingName, ""
	}
	m.options.System.Revision = m.revision
	m.reorderAddresses()
	m.settleFeatures()
	m.settleNetworking()
	m.loseNetworks()
	m.seedRoutes()
	m.bootEnvironment = m.environment.clone()
	m.startSystemProcesses()
	m.journal.Append(KindPower, "boot", 0)
	return m.boots, m.up
}

// finish starts the automatic services and completes the boot, unless the machine was powered off in the meantime.
func (m *Machine) finish(up context.Context, boot int) {
	m.startAutomaticServices(up)
	m.lock()
	defer m.unlock()
	if m.boots != boot {
		return
	}
	m.power = powerOn
	m.changes.send()
	for _, hook := range m.onBoot {
		m.later(hook)
	}
}

// Running reports whether the machine is on and has completed its boot.
func (m *Machine) Running() bool {
	m.lock()
	defer m.unlock()
	return m.power == powerOn
}

// BootID returns an identifier that differs after each boot. It is empty before the first boot.
func (m *Machine) BootID() string {
	m.lock()
	defer m.unlock()
	return m.bootID
}

// OnBoot registers a hook that runs at the end of each boot, including reboots. Hooks must not wait for programs.
func (m *Machine) OnBoot(hook func()) {
	m.lock()
	defer m.unlock()
	m.onBoot = append(m.onBoot, hook)
}

// OnShutdown registers a hook that runs after the end of all processes, before a reboot and at power off.
func (m *Machine) OnShutdown(hook func()) {
	m.lock()
	defer m.unlock()
	m.onShutdown = append(m.onShutdown, hook)
}

// PowerOff ends all processes at once, like a power failure, and calls the OnShutdown hooks before it returns. A
// reboot in progress is not completed.
func (m *Machine) PowerOff() {
	m.lock()
	defer m.unlock()
	switch m.power {
	case powerOff:
		return
	case powerRestarting:
		m.boots++ // cancels the pending boot
		m.down()
	default:
		m.shutDown()
		for _, hook := range m.onShutdown {
			m.later(hook)
		}
	}
	m.power = powerOff
	m.journal.Append(KindPower, "power off", 0)
}

// Close powers the machine off and waits until all its goroutines have ended. Programs and hooks must not call Close.
func (m *Machine) Close() {
	m.PowerOff()
	m.programs.Wait()
}

// shutDown ends the current boot.
func (m *Machine) shutDown() {
	m.boots++
	m.power = powerOff // set before the processes end, so that their end does not count as a crash
	m.lingers = false
	for _, p := range m.processes {
		p.end(exitKilled, true)
	}
	m.unmountAll()
	m.down()
	for writer := range m.drive.writers {
		m.later(func() { _ = writer.close(ErrPoweredOff) }) // it may already be closed
	}
}

// power implements host.Power for one process.
type power struct{ p *Process }

// Reboot is accepted immediately. Without a delay, it ends all processes before it returns, and further actions of
// the caller have no effect. With a delay, the machine keeps running for that time, as Windows does until its
// services have stopped. Further reboot requests during that time have no effect.
func (w power) Reboot(ctx context.Context, reason string) error {
	return w.p.do(ctx, "Power", "Reboot", reason, func(m *Machine) error {
		if m.power != powerOn && m.power != powerBooting {
			return ErrPoweredOff
		}
		if m.lingers {
			return nil // ERROR_SHUTDOWN_IN_PROGRESS, which is not an error of a reboot
		}
		w.p.record(KindReboot, reason, 0)
		delay := m.options.ShutdownDelay + m.faults.linger
		if delay <= 0 {
			m.goDown()
			return nil
		}
		m.lingers = true
		m.programs.Add(1)
		go m.linger(m.up, m.clock.NewTimer(delay), m.boots)
		return nil
	})
}

// linger waits for the time between an accepted reboot and the end of all processes. A power off ends the wait.
func (m *Machine) linger(up context.Context, timer clock.Timer, boot int) {
	defer m.programs.Done()
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-up.Done():
	}
	m.lock()
	defer m.unlock()
	if m.boots == boot {
		m.goDown()
	}
}

// goDown performs the first half of a reboot.
func (m *Machine) goDown() {
	m.shutDown()
	m.power = powerRestarting
	// A power off cancels the wait. The timer is created before other goroutines can observe that the machine is
	// down.
	waiting, cut := context.WithCancel(context.Background())
	m.down = cut
	var timer clock.Timer
	if m.options.RebootDuration > 0 {
		timer = m.clock.NewTimer(m.options.RebootDuration)
	}
	boot := m.boots
	m.programs.Add(1)
	go m.comeBack(waiting, timer, boot)
}

// comeBack performs the second half of a reboot. It runs on a separate goroutine, so that the hooks may wait for the
// caller of Reboot.
func (m *Machine) comeBack(waiting context.Context, timer clock.Timer, boot int) {
	defer m.programs.Done()
	m.lock()
	for _, hook := range m.onShutdown {
		m.later(hook)
	}
	m.unlock()
	if timer != nil {
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-waiting.Done():
		}
	}
	m.lock()
	if m.boots != boot {
		m.unlock()
		return
	}
	next, up := m.begin()
	m.unlock()
	m.finish(up, next)
}
