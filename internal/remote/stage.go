package remote

import "errors"

// Stage is a stage of connecting to a host.
type Stage int

// The stages, in order.
const (
	StageName           Stage = iota + 1 // the name resolves to an address that a host can have
	StageTCP                             // the port answers
	StageIdentification                  // an SSH server answers on the port
	StageHostKey                         // the server authenticates with an accepted host key
	StageLogin                           // the user logs in
)

// withStage records the reached stage of the handshake in an error.
func (h *handshake) withStage(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e.HostKey = h.hostKey
	switch {
	case h.trusted:
		e.Stage = StageLogin
	case h.refused != nil, h.conn.greetingKind() == greetingSSH:
		e.Stage = StageHostKey
	default:
		e.Stage = StageIdentification
	}
	return err
}
