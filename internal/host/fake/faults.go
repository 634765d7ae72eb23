package fake

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// faults are what tests let go wrong. The machine's lock guards them.
type faults struct {
	hooks     []*operationHook
	badStarts map[string]int // exit code by service
	linger    time.Duration  // on top of Options.ShutdownDelay
	dism      *hungDISM      // nil while DISM works
	lists     map[string]listFault
	attach    attachFault
	vanishing map[string]bool // HNS objects by key; true: only after they were listed
}

// hungDISM is DISM that hangs from its first change on.
type hungDISM struct {
	mended  chan struct{} // closed when it hangs no more
	changes bool
}

type operationHook struct{ ask func(Operation) error }

func (f *faults) operationHooks() []func(Operation) error {
	var hooks []func(Operation) error
	for _, hook := range f.hooks {
		hooks = append(hooks, hook.ask)
	}
	return hooks
}

// OnOperation registers a hook that is called before each host operation of any process and of the console. If it
// returns an error, the operation fails with it and does nothing. It may kill the process, cut the power, and wait.
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

// DiskFull leaves this many bytes free on C: until it is mended.
func (m *Machine) DiskFull(freeBytes int64) (mend func()) {
	m.lock()
	defer m.unlock()
	taken := m.drive.free() - freeBytes
	m.drive.capacity -= taken
	return func() {
		m.lock()
		defer m.unlock()
		m.drive.capacity += taken
		taken = 0
	}
}

// LingersBeforeReboot makes the machine work on for so much longer after it has accepted a reboot, until it is mended.
func (m *Machine) LingersBeforeReboot(longer time.Duration) (mend func()) {
	m.lock()
	defer m.unlock()
	m.faults.linger = longer
	return func() {
		m.lock()
		defer m.unlock()
		m.faults.linger = 0
	}
}

// DISMHangs makes Windows' servicing hang with the next change of a feature, until it is mended: the change does not
// end, also when it is asked to stop, and from then on no question about a feature is answered.
func (m *Machine) DISMHangs() (mend func()) {
	m.lock()
	defer m.unlock()
	hung := &hungDISM{mended: make(chan struct{})}
	m.faults.dism = hung
	return sync.OnceFunc(func() {
		m.lock()
		defer m.unlock()
		close(hung.mended)
		m.faults.dism = nil
	})
}

// ServiceFailsToStart makes each start of the service fail with the exit code until it is mended.
func (m *Machine) ServiceFailsToStart(name string, exitCode int) (mend func()) {
	m.lock()
	defer m.unlock()
	if m.faults.badStarts == nil {
		m.faults.badStarts = map[string]int{}
	}
	m.faults.badStarts[key(name)] = exitCode
	return func() {
		m.lock()
		defer m.unlock()
		delete(m.faults.badStarts, key(name))
	}
}

// HoldFile keeps a file in use, as a virus scanner does, until it is released. Reboots do not release it.
func (m *Machine) HoldFile(path string) (release func(), err error) {
	return m.holdFile(path, hold{})
}

// MapFile has another program map a file into its memory until it is released: others read and write it meanwhile, but
// nobody can make it shorter, replace or remove it. Reboots do not release it.
func (m *Machine) MapFile(path string) (release func(), err error) {
	return m.holdFile(path, hold{shared: true, mapped: true})
}

func (m *Machine) holdFile(path string, how hold) (release func(), err error) {
	m.lock()
	defer m.unlock()
	at, err := m.drive.existing(path, true)
	if err != nil {
		return nil, pathError("hold", path, err)
	}
	if at.node == nil {
		return nil, fmt.Errorf("hold %s: it lies in a mounted folder", path)
	}
	h := at.node.hold("another program", false)
	h.shared, h.mapped = how.shared, how.mapped
	return func() {
		m.lock()
		defer m.unlock()
		h.release()
	}, nil
}

// CrashService ends the process of a running service with the exit code (not 0), as if by itself and without a report to
// the service control manager. Errors: ErrNotExist
// when the service does not run.
func (m *Machine) CrashService(name string, exitCode int) error {
	m.lock()
	defer m.unlock()
	s := m.services[key(name)]
	if s == nil || s.process == nil {
		return fmt.Errorf("crash %s: it does not run: %w", name, host.ErrNotExist)
	}
	s.process.end(exitCode, false)
	return nil
}
