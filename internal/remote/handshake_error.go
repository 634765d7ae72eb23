package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	api "github.com/windows-machine-config/wmco/api/v1alpha1"
)

// handshakeError returns the error for a failed handshake.
func (h *handshake) handshakeError(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var negotiation *ssh.AlgorithmNegotiationError
	greeting := h.conn.greetingKind()
	switch {
	case h.refused != nil:
		return refusedHostKeyError(h.target, h.refused)
	case errors.As(err, &negotiation):
		return noCommonAlgorithmError(h.target, negotiation)
	case greeting == greetingOther, greeting == greetingOld:
		return notSSHError(h.target, greeting, err)
	case isDropped(err):
		return h.droppedError(err)
	case h.trusted && strings.Contains(err.Error(), "no common public key signature algorithm"):
		return &Error{Reason: ReasonNoCommonAlgorithm, Host: h.target.Address, Err: err,
			Message: fmt.Sprintf("the SSH server accepts logins with a key of type %s only with algorithms that are not safe",
				h.target.Key.Algorithm),
			Next: "update OpenSSH on the host, or use an Ed25519 or ECDSA key in Secret cloud-private-key" +
				allowHint([]string{ssh.KeyAlgoRSA})}
	case h.trusted:
		return authenticationError(h.target, h.offered, err)
	}
	return &Error{Reason: ReasonNotSSH, Host: h.target.Address, Err: err,
		Message: fmt.Sprintf("the server on port %d violates the SSH protocol (%s)", h.target.Port, sanitizeText(err.Error())),
		Next:    "check which program listens on that port of the host"}
}

// isDropped reports whether the connection ended, in contrast to a refusal.
func isDropped(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// droppedError returns the error for a connection that ended during the handshake. The caller must hold h.mu.
func (h *handshake) droppedError(err error) error {
	during := "the SSH handshake"
	if h.trusted {
		during = fmt.Sprintf("the login of user %s", h.target.User)
	}
	return &Error{Reason: ReasonConnectionLost, Host: h.target.Address, Err: err,
		Message: fmt.Sprintf("the host ended the connection during %s", during),
		Next:    "the operator retries; if this persists, see the log of the service sshd on the host: OpenSSH 9.8 and later refuses an address for a while after failed logins"}
}

// refusedHostKeyError returns the error for a rejected host key.
func refusedHostKeyError(target Target, err error) error {
	var changed *HostKeyChangedError
	var weak *HostKeyWeakError
	switch {
	case errors.As(err, &changed):
		return changedHostKeyError(target, changed)
	case errors.As(err, &weak):
		return &Error{Reason: ReasonNoCommonAlgorithm, Host: target.Address, Message: weak.Error(), Err: weak,
			Next: "create new host keys on the host: delete ssh_host_rsa_key and ssh_host_rsa_key.pub in C:\\ProgramData\\ssh, run ssh-keygen -A, and restart the service sshd"}
	}
	return &Error{Reason: ReasonHostKeyUnexpected, Host: target.Address, Err: err,
		Message: fmt.Sprintf("%v: another machine responds at this address, or the expected key belongs to an earlier installation or has another type", err),
		Next: fmt.Sprintf("the operator sends nothing to the host. Compare the key on the host's console with ssh-keygen -l; if the host is the right one, correct the annotation %s",
			api.AnnotationExpectedHostKey)}
}

func forbiddenAddressError(target Target, address netip.Addr, what string) error {
	message := "this address cannot belong to a Windows host: it is " + what
	if target.Address != address.String() {
		message = fmt.Sprintf("the name resolves to %s, which cannot belong to a Windows host: it is %s", address, what)
	}
	return &Error{Reason: ReasonAddressNotAllowed, Host: target.Address, Stage: StageName, Message: message,
		Next: "the operator sends nothing to this address. Correct the address, or the DNS record of the name"}
}

func changedHostKeyError(target Target, changed *HostKeyChangedError) error {
	namespace := ""
	if target.Namespace != "" {
		namespace = " -n " + target.Namespace
	}
	return &Error{Reason: ReasonHostKeyChanged, Host: target.Address, Err: changed,
		Message: fmt.Sprintf("%v: the host was reinstalled, or another machine responds at this address", changed),
		Next: fmt.Sprintf("if the new key is correct (compare it on the host's console with ssh-keygen -l), accept it with: kubectl annotate windowsinstance %s%s --overwrite %s=%s",
			target.Instance, namespace, api.AnnotationAcceptHostKey, changed.Presented.Fingerprint())}
}

func authenticationError(target Target, offered bool, err error) error {
	e := &Error{Reason: ReasonAuthenticationFailed, Host: target.Address, Err: err}
	if !offered {
		e.Message = fmt.Sprintf("the SSH server does not allow user %s to log in with a key", target.User)
		e.Next = "set PubkeyAuthentication yes in C:\\ProgramData\\ssh\\sshd_config on the host and restart the service sshd"
		return e
	}
	e.Message = fmt.Sprintf("the host does not accept the key of Secret cloud-private-key (%s) for user %s",
		target.Key.Fingerprint(), target.User)
	e.Next = fmt.Sprintf("check the user name, that %s is an administrator, and that the key's public half is in C:\\ProgramData\\ssh\\administrators_authorized_keys on the host, readable by SYSTEM and Administrators only. "+
		"If all of this is correct, check the group policy \"Deny access to this computer from the network\": security baselines deny this access to local accounts",
		target.User)
	return e
}

func noCommonAlgorithmError(target Target, negotiation *ssh.AlgorithmNegotiationError) error {
	return &Error{Reason: ReasonNoCommonAlgorithm, Host: target.Address, Err: negotiation,
		Message: fmt.Sprintf("the SSH server offers no safe %s, only %s", negotiation.What,
			sanitizeText(strings.Join(negotiation.RequestedAlgorithms, ", "))),
		Next: "update OpenSSH on the host, or enable safe algorithms in C:\\ProgramData\\ssh\\sshd_config" +
			allowHint(negotiation.RequestedAlgorithms)}
}

func notSSHError(target Target, greeting greetingKind, err error) error {
	message := fmt.Sprintf("the program that listens on port %d is not an SSH server", target.Port)
	if greeting == greetingOld {
		message = fmt.Sprintf("the SSH server on port %d supports only version 1 of the protocol", target.Port)
	}
	return &Error{Reason: ReasonNotSSH, Host: target.Address, Err: err, Message: message,
		Next: "install the Windows feature OpenSSH Server on the host and configure the server to listen on that port"}
}
