package remote

import "errors"

// Stage is a part of the way to a login.
type Stage int

// The stages, in their order.
const (
	StageName           Stage = iota + 1 // the name resolves, to an address at which a host can be
	StageTCP                             // the port answers
	StageIdentification                  // an SSH server answers there
	StageHostKey                         // it proves that it has the right host key
	StageLogin                           // it lets the user in
)

// staged notes in an error how far the handshake came.
func (h *handshake) staged(err error) error {
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
