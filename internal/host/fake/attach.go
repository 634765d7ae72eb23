package fake

import (
	"errors"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// attachFault simulates a Host Networking Service that is slow to attach endpoints to the machine.
type attachFault struct {
	refused int // number of attempts that fail
	hidden  int // number of later lists that do not show attachments
}

var errWrongDisk = errors.New("the wrong diskette is in the drive (0x80070022)")

// DelayAttachment makes the next attempts to attach an endpoint fail, as HNS does after creating the endpoint. The
// given number of lists after the attachment do not show it.
func (m *Machine) DelayAttachment(refused, hidden int) {
	m.lock()
	defer m.unlock()
	m.faults.attach = attachFault{refused, hidden}
}

// refuseAttach returns the simulated error of an attempt.
func (m *Machine) refuseAttach() error {
	if m.faults.attach.refused == 0 {
		return nil
	}
	m.faults.attach.refused--
	return errWrongDisk
}

// visibleEndpoints returns the endpoints as currently listed by Windows.
func (m *Machine) visibleEndpoints() []host.HNSEndpoint {
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
