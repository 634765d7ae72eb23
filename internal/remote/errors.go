package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is the reason of a host failure, in the format of a condition reason.
type Reason string

// Reasons of failures.
const (
	ReasonNameNotResolved      Reason = "NameNotResolved"      // the DNS name does not resolve to an address
	ReasonUnreachable          Reason = "Unreachable"          // the connection is refused, or there is no route
	ReasonConnectionTimedOut   Reason = "ConnectionTimedOut"   // the host did not answer in time
	ReasonNotSSH               Reason = "NotSSH"               // the server does not speak SSH
	ReasonNoCommonAlgorithm    Reason = "NoCommonAlgorithm"    // the SSH server offers only algorithms that are not allowed
	ReasonHostKeyChanged       Reason = "HostKeyChanged"       // the host key differs from the pinned key
	ReasonHostKeyUnexpected    Reason = "HostKeyUnexpected"    // the host key at the first contact is not among the announced keys
	ReasonAddressNotAllowed    Reason = "AddressNotAllowed"    // the address is in a network that cannot contain hosts
	ReasonAuthenticationFailed Reason = "AuthenticationFailed" // the host does not accept the operator's key for the user
	ReasonConnectionLost       Reason = "ConnectionLost"       // an established connection ended
	ReasonSessionRejected      Reason = "SessionRejected"      // the SSH server opens no session on an established connection
	ReasonShellUnsupported     Reason = "ShellUnsupported"     // the default shell is neither cmd.exe nor PowerShell
	ReasonAgentStartFailed     Reason = "AgentStartFailed"     // the shell ran the agent command, but the agent did not answer
	ReasonAgentBlocked         Reason = "AgentBlocked"         // Windows or an antivirus prevents the agent from running
	ReasonAgentTimedOut        Reason = "AgentTimedOut"        // a running agent command reported nothing for too long
	ReasonAgentExited          Reason = "AgentExited"          // an agent command ended without an answer
	ReasonTransferFailed       Reason = "TransferFailed"       // a file could not be transferred
	ReasonDiskFull             Reason = "DiskFull"             // the host's volume has no free space
	ReasonRemovalIncomplete    Reason = "RemovalIncomplete"    // some files could not be deleted
)

// Error is a failure with one host, described for an administrator. Failures of the agent carry the agent's own
// reasons (agentapi.Reason). A canceled context is not returned as an Error.
type Error struct {
	Reason Reason
	// Host is the address as written by the user.
	Host string
	// Message describes the failure and its cause, without the host.
	Message string
	// Next is the action for the administrator.
	Next string
	// Stage is the stage at which connecting failed. It is zero for a failure on an established connection.
	Stage Stage
	// HostKey is the accepted key of the host if connecting failed after the host key check.
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

// ReasonOf returns the reason of the first Error in err's chain, or an empty Reason.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// TimeoutError is a wait that exceeded its limit.
type TimeoutError struct {
	Waiting string // "the SSH key exchange"
	Limit   time.Duration
	// Overall is true if the host answered but the operation as a whole took too long.
	Overall bool
}

func (e *TimeoutError) Error() string {
	if e.Overall {
		return fmt.Sprintf("not completed within %s", e.Limit)
	}
	return fmt.Sprintf("waited %s for %s", e.Limit, e.Waiting)
}

// Timeout returns true, as for timeout errors of package net.
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
	// Expected are the announced fingerprints.
	Expected  []string
	Presented HostKey
}

// maxExpectedKeys is the maximum number of fingerprints in a message.
const maxExpectedKeys = 5

func (e *HostKeyUnexpectedError) Error() string {
	expected := strings.Join(e.Expected[:min(len(e.Expected), maxExpectedKeys)], " or ")
	if more := len(e.Expected) - maxExpectedKeys; more > 0 {
		expected += fmt.Sprintf(" or one of %d more", more)
	}
	return fmt.Sprintf("at the first contact the host presented the SSH host key %s (%s), but the expected key is %s",
		e.Presented.Fingerprint(), e.Presented.Type, expected)
}

// HostKeyWeakError reports a host key that is too short to be safe.
type HostKeyWeakError struct {
	Presented HostKey
	Bits      int
}

func (e *HostKeyWeakError) Error() string {
	return fmt.Sprintf("the SSH host key %s is an RSA key of %d bits, and RSA keys of less than %d bits can be forged",
		e.Presented.Fingerprint(), e.Bits, minRSABits)
}

// LeftBehindError lists the files that could not be deleted; the cause of ReasonRemovalIncomplete.
type LeftBehindError struct {
	// Files maps Windows paths to the errors of their deletion.
	Files map[string]error
}

// ErrClosed is returned by Connection.Err after the operator closed the connection.
var ErrClosed = errors.New("the operator closed the connection")
