package fake

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// faults are the failures simulated for tests, guarded by the machine's lock.
type faults struct {
	hooks     []*operationHook
	badStarts map[string]int // exit code by service
	linger    time.Duration  // in addition to Options.ShutdownDelay
	dism      *hungDISM      // nil while DISM works
	lists     map[string]listFault
	attach    attachFault
	vanishing map[string]bool // HNS objects by key; true: only after they were listed
}

// hungDISM is a DISM that hangs from its first change on.
type hungDISM struct {
	repaired chan struct{} // closed when DISM works again
	changes  bool
}

type operationHook struct{ ask func(Operation) error }

func (f *faults) operationHooks() []func(Operation) error {
	var hooks []func(Operation) error
	for _, hook := range f.hooks {
		hooks = append(hooks, hook.ask)
	}
	return hooks
}

// OnOperation registers a hook that is called before each host operation of any process and of the console. If the
// hook returns an error, the operation fails with that error and has no effect. The hook may kill the process, power
// off the machine, and block.
func (m *Machine) OnOperation(ask func(Operation) error) (remove func()) {
	hook := &operationHook{ask}
	m.lock()
	defer m.unlock()
	m.faults.hooks = append(m.faults.hooks, hook)
	return func() {
		m.lock()
		defer m.unlock()
		m.faults.hooks = slices.DeleteFunc(slices.Clone(m.faults.hooks), func(h *operationHook) bool { return h == hook })
	}
}

// FillDisk leaves only freeBytes free on C: until restore is called.
func (m *Machine) FillDisk(freeBytes int64) (restore func()) {
	m.lock()
	defer m.unlock()
	taken := m.drive.freeBytes() - freeBytes
	m.drive.capacity -= taken
	return func() {
		m.lock()
		defer m.unlock()
		m.drive.capacity += taken
		taken = 0
	}
}

// DelayShutdown makes the machine keep running for the additional time after it accepts a reboot, until restore is
// called.
func (m *Machine) DelayShutdown(longer time.Duration) (restore func()) {
	m.lock()
	defer m.unlock()
	m.faults.linger = longer
	return func() {
		m.lock()
		defer m.unlock()
		m.faults.linger = 0
	}
}

// HangDISM makes Windows' servicing hang from the next change of a feature, until restore is called. The change does
// not end, even when canceled, and all later queries about features block.
func (m *Machine) HangDISM() (restore func()) {
	m.lock()
	defer m.unlock()
	hung := &hungDISM{repaired: make(chan struct{})}
	m.faults.dism = hung
	return sync.OnceFunc(func() {
		m.lock()
		defer m.unlock()
		close(hung.repaired)
		m.faults.dism = nil
	})
}

// FailServiceStart makes each start of the service fail with the exit code until restore is called.
func (m *Machine) FailServiceStart(name string, exitCode int) (restore func()) {
	m.lock()
	defer m.unlock()
	if m.faults.badStarts == nil {
		m.faults.badStarts = map[string]int{}
	}
	m.faults.badStarts[foldCase(name)] = exitCode
	return func() {
		m.lock()
		defer m.unlock()
		delete(m.faults.badStarts, foldCase(name))
	}
}

// HoldFile keeps a file in use, as a virus scanner does, until release is called. Reboots do not release the file.
func (m *Machine) HoldFile(path string) (release func(), err error) {
	return m.holdFile(path, hold{})
}

// MapFile simulates another program that maps a file into memory, until release is called. The file can be read and
// written, but not truncated, replaced or removed. Reboots do not release the file.
func (m *Machine) MapFile(path string) (release func(), err error) {
	return m.holdFile(path, hold{shared: true, mapped: true})
}

func (m *Machine) holdFile(path string, how hold) (release func(), err error) {
	m.lock()
	defer m.unlock()
	at, err := m.drive.resolveExisting(path, true)
	if err != nil {
		return nil, pathError("hold", path, err)
	}
	if at.node == nil {
		return nil, fmt.Errorf("hold %s: the file is in a mounted directory", path)
	}
	h := at.node.addHold("another program", false)
	h.shared, h.mapped = how.shared, how.mapped
	return func() {
		m.lock()
		defer m.unlock()
		h.releaseNode()
	}, nil
}

// CrashService ends the process of a running service with the exit code (not 0), as if the process ended without a
// report to the service control manager. It returns ErrNotExist if the service does not run.
func (m *Machine) CrashService(name string, exitCode int) error {
	m.lock()
	defer m.unlock()
	s := m.services[foldCase(name)]
	if s == nil || s.process == nil {
		return fmt.Errorf("crash service %s: the service is not running: %w", name, host.ErrNotExist)
	}
	s.process.endProcess(exitCode, false)
	return nil
}
