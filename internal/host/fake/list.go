package fake

import (
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Lists that Windows enumerates through COM. Items arrive one by one, and a failure arrives instead of an item or of
// the end.
const (
	FirewallList  = "firewall"
	AntivirusList = "wmi"
)

// Failure codes of such lists.
const (
	CodeAccessDenied    = 0x80041003 // WBEM_E_ACCESS_DENIED
	CodeDefenderStopped = 0x800106ba // ERROR_MP_SERVICE_NOT_RUNNING
	CodeInvalidClass    = 0x80041010 // WBEM_E_INVALID_CLASS
)

// listFault is a simulated failure of a list.
type listFault struct {
	after int
	code  uint32
}

// FailList makes a list fail with the code after the given number of items, until restore is called. All calls that
// read the list fail, including changes, which read the list first.
func (m *Machine) FailList(list string, after int, code uint32) (restore func()) {
	m.lock()
	defer m.unlock()
	if m.faults.lists == nil {
		m.faults.lists = map[string]listFault{}
	}
	m.faults.lists[list] = listFault{after, code}
	return func() {
		m.lock()
		defer m.unlock()
		delete(m.faults.lists, list)
	}
}

// readList returns an error if a list with this number of items fails.
func (f *faults) readList(list string, items int) error {
	fault, fails := f.lists[list]
	if !fails || items < fault.after {
		return nil
	}
	err := fmt.Errorf("read the list after %d items (0x%08x)", fault.after, fault.code)
	if list != AntivirusList {
		return err
	}
	switch fault.code {
	case CodeAccessDenied:
		return fmt.Errorf("%w: %w", err, host.ErrRefused)
	case CodeDefenderStopped:
		return fmt.Errorf("%w: %w", err, host.ErrNoAntivirus)
	}
	return err
}
