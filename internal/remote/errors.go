package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is the reason of a failure with a host, in the form of a condition's reason.
type Reason string

// Reasons.
const (
	ReasonNameNotResolved      Reason = "NameNotResolved"      // the DNS name has no address
	ReasonUnreachable          Reason = "Unreachable"          // the connection is refused, or there is no route
	ReasonConnectionTimedOut   Reason = "ConnectionTimedOut"   // the host did not answer in time
	ReasonNotSSH               Reason = "NotSSH"               // something else than an SSH server answers
	ReasonNoCommonAlgorithm    Reason = "NoCommonAlgorithm"    // the SSH server knows only algorithms that are not allowed
	ReasonHostKeyChanged       Reason = "HostKeyChanged"       // the host key is not the pinned one
	ReasonHostKeyUnexpected    Reason = "HostKeyUnexpected"    // at the first contact the host key is not among the announced ones
	ReasonAddressNotAllowed    Reason = "AddressNotAllowed"    // the address is in a network in which no host can be
	ReasonAuthenticationFailed Reason = "AuthenticationFailed" // the host does not accept the operator's key for the user
	ReasonConnectionLost       Reason = "ConnectionLost"       // an established connection ended
	ReasonSessionRejected      Reason = "SessionRejected"      // the SSH server opens no session on an established connection
	ReasonShellUnsupported     Reason = "ShellUnsupported"     // the default shell is neither cmd.exe nor PowerShell
	ReasonAgentStartFailed     Reason = "AgentStartFailed"     // the shell ran the agent's command, the agent did not answer
	ReasonAgentBlocked         Reason = "AgentBlocked"         // Windows or an antivirus keeps the agent from running
	ReasonAgentTimedOut        Reason = "AgentTimedOut"        // a running verb reported nothing for too long
	ReasonAgentExited          Reason = "AgentExited"          // a verb ended without an answer
	ReasonTransferFailed       Reason = "TransferFailed"       // a file could not be transferred
	ReasonDiskFull             Reason = "DiskFull"             // the host's volume has no room
	ReasonRemovalIncomplete    Reason = "RemovalIncomplete"    // some files could not be deleted
)

// Error is a failure with one host, in words for an administrator. Failures of the agent carry the agent's own reasons
// (verb.Reason). A canceled context is no Error.
type Error struct {
	Reason Reason
	// Host is the address as the user wrote it.
	Host string
	// Message says what happened and why, without the host.
	Message string
	// Next says what to do about it.
	Next string
	// Stage is how far a connection came that could not be made; zero for a failure on one that was.
	Stage Stage
	// HostKey is the key that the host has shown and that was admitted, of a connection that could not be made later on.
	HostKey *HostKey
	// Err is the cause; it may be nil.
	Err error
}

func (e *Error) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("host %s: %s", e.Host, e.Message)
	}
	return fmt.Sprintf("host %s: %s; %s", e.Host, e.Message, e.Next)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a time limit passed.
func (e *Error) Timeout() bool {
	var timeout *TimeoutError
	return errors.As(e.Err, &timeout)
}

// ReasonOf returns the reason of the first Error in err's chain; empty when there is none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// TimeoutError names the wait that ran out of time.
type TimeoutError struct {
	Waiting string // "the SSH key exchange"
	Limit   time.Duration
	// Overall is true when there were answers, and the whole has taken too long.
	Overall bool
}

func (e *TimeoutError) Error() string {
	if e.Overall {
		return fmt.Sprintf("it was not complete after %s", e.Limit)
	}
	return fmt.Sprintf("waited %s for %s", e.Limit, e.Waiting)
}

// Timeout is always true, as with the errors of package net.
func (e *TimeoutError) Timeout() bool { return true }

// HostKeyChangedError is the cause of ReasonHostKeyChanged.
type HostKeyChangedError struct {
	Pinned    HostKey
	Presented HostKey
}

func (e *HostKeyChangedError) Error() string {
	return fmt.Sprintf("the host presented the SSH host key %s (%s), but the pinned key is %s (%s)",
		e.Presented.Fingerprint(), e.Presented.Type, e.Pinned.Fingerprint(), e.Pinned.Type)
}

// HostKeyUnexpectedError is the cause of ReasonHostKeyUnexpected.
type HostKeyUnexpectedError struct {
	// Expected are fingerprints.
	Expected  []string
	Presented HostKey
}

// mostExpected is how many fingerprints a message lists.
const mostExpected = 5

func (e *HostKeyUnexpectedError) Error() string {
	expected := strings.Join(e.Expected[:min(len(e.Expected), mostExpected)], " or ")
	if more := len(e.Expected) - mostExpected; more > 0 {
		expected += fmt.Sprintf(" or one of %d more", more)
	}
	return fmt.Sprintf("at the first contact the host presented the SSH host key %s (%s), but the expected key is %s",
		e.Presented.Fingerprint(), e.Presented.Type, expected)
}

// HostKeyWeakError is a host key that is too short to be safe.
type HostKeyWeakError struct {
	Presented HostKey
	Bits      int
}

func (e *HostKeyWeakError) Error() string {
	return fmt.Sprintf("the SSH host key %s is an RSA key of %d bits, and RSA keys of less than %d bits can be forged",
		e.Presented.Fingerprint(), e.Bits, shortestRSA)
}

// LeftBehindError lists what could not be deleted; the cause of ReasonRemovalIncomplete.
type LeftBehindError struct {
	// Files maps Windows paths to why they are still there.
	Files map[string]error
}

// ErrClosed is Connection.Err after the operator itself closed the connection.
var ErrClosed = errors.New("the operator closed the connection")
