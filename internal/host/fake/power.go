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
		return m.WaitFor(ctx, (*Machine).IsRunning)
	}
	boot, up := m.beginBoot()
	m.unlock()
	m.finishBoot(up, boot)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("boot %s: %w", m.options.Name, err)
	}
	return nil
}

// beginBoot starts a boot and applies pending changes.
func (m *Machine) beginBoot() (boot int, up context.Context) {
	m.boots++
	m.power = powerBooting
	if m.down != nil {
		m.down()
	}
	m.up, m.down = context.WithCancel(context.Background())
	m.bootTime = m.clock.Now()
	m.bootID = newStableID("boot", m.options.System.MachineID, m.options.Name, strconv.Itoa(m.boots), m.bootTime.String())
	if m.pendingName != "" {
		m.journal.Append(KindHostName, m.pendingName+" takes effect", 0)
		m.name, m.pendingName = m.pendingName, ""
	}
	m.options.System.Revision = m.revision
	m.reorderAddresses()
	m.applyPendingFeatures()
	m.syncNetworkingServices()
	m.loseNetworks()
	m.seedRoutes()
	m.bootEnvironment = m.environment.copyVariables()
	m.startSystemProcesses()
	m.journal.Append(KindPower, "boot", 0)
	return m.boots, m.up
}

// finishBoot starts the automatic services and completes the boot, unless the machine was powered off in the meantime.
func (m *Machine) finishBoot(up context.Context, boot int) {
	m.startAutomaticServices(up)
	m.lock()
	defer m.unlock()
	if m.boots != boot {
		return
	}
	m.power = powerOn
	m.changes.notifyWaiters()
	for _, hook := range m.onBoot {
		m.deferUntilUnlock(hook)
	}
}

// IsRunning reports whether the machine is on and has completed its boot.
func (m *Machine) IsRunning() bool {
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
			m.deferUntilUnlock(hook)
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
		p.endProcess(exitKilled, true)
	}
	m.unmountAll()
	m.down()
	for writer := range m.drive.writers {
		m.deferUntilUnlock(func() { _ = writer.close(ErrPoweredOff) }) // it may already be closed
	}
}

// power implements host.Power for one process.
type power struct{ p *Process }

// Reboot is accepted immediately. Without a delay, it ends all processes before it returns, and further actions of
// the caller have no effect. With a delay, the machine keeps running for that time, as Windows does until its
// services have stopped. Further reboot requests during that time have no effect.
func (w power) Reboot(ctx context.Context, reason string) error {
	return w.p.runOperation(ctx, "Power", "Reboot", reason, func(m *Machine) error {
		if m.power != powerOn && m.power != powerBooting {
			return ErrPoweredOff
		}
		if m.lingers {
			return nil // ERROR_SHUTDOWN_IN_PROGRESS, which is not an error of a reboot
		}
		w.p.recordEntry(KindReboot, reason, 0)
		delay := m.options.ShutdownDelay + m.faults.linger
		if delay <= 0 {
			m.startReboot()
			return nil
		}
		m.lingers = true
		m.programs.Add(1)
		go m.lingerBeforeReboot(m.up, m.clock.NewTimer(delay), m.boots)
		return nil
	})
}

// lingerBeforeReboot waits for the time between an accepted reboot and the end of all processes. A power off ends the
// wait.
func (m *Machine) lingerBeforeReboot(up context.Context, timer clock.Timer, boot int) {
	defer m.programs.Done()
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-up.Done():
	}
	m.lock()
	defer m.unlock()
	if m.boots == boot {
		m.startReboot()
	}
}

// startReboot performs the first half of a reboot.
func (m *Machine) startReboot() {
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
	go m.completeReboot(waiting, timer, boot)
}

// completeReboot performs the second half of a reboot. It runs on a separate goroutine, so that the hooks may wait
// for the caller of Reboot.
func (m *Machine) completeReboot(waiting context.Context, timer clock.Timer, boot int) {
	defer m.programs.Done()
	m.lock()
	for _, hook := range m.onShutdown {
		m.deferUntilUnlock(hook)
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
	next, up := m.beginBoot()
	m.unlock()
	m.finishBoot(up, next)
}
