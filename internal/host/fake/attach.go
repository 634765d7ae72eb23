package fake

import (
	"errors"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// attachFault is a Host Networking Service that is slow to attach endpoints to the machine.
type attachFault struct {
	refused int // attempts that fail
	hidden  int // lists after them that do not show that an endpoint is attached
}

var errWrongDisk = errors.New("the wrong diskette is in the drive (0x80070022)")

// SlowsAttachment lets the next attempts to attach an endpoint fail, as HNS does after it created the endpoint, and the
// lists after the attachment not show it.
func (m *Machine) SlowsAttachment(refused, hidden int) {
	m.lock()
	defer m.unlock()
	m.faults.attach = attachFault{refused, hidden}
}

// refuseAttach returns the error of an attempt that fails on request.
func (m *Machine) refuseAttach() error {
	if m.faults.attach.refused == 0 {
		return nil
	}
	m.faults.attach.refused--
	return errWrongDisk
}

// shownEndpoints returns the endpoints as Windows lists them now.
func (m *Machine) shownEndpoints() []host.HNSEndpoint {
	list := slices.Clone(m.endpoints)
	hides := m.faults.attach.hidden > 0 && slices.ContainsFunc(list, func(e host.HNSEndpoint) bool { return e.Attached })
	if hides {
		m.faults.attach.hidden--
	}
	for i := range list {
		if hides {
			list[i].Attached, list[i].Adapter = false, ""
		}
	}
	return list
}
