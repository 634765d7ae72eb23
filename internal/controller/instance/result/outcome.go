package result

// Outcome defines how a reconcile continues after a result.
type Outcome int

const (
	// Retry means a failure. The phases run again after increasing delays.
	Retry Outcome = iota
	// ChangeFailed means that the host does not work after a change. The phases run again, and the failures are
	// counted. After a number of failures, the host is rolled back.
	ChangeFailed
	// Wait means that something is in progress. The phases run again on its completion, or after the time in the
	// result.
	Wait
	// Blocked means that the result lasts until an administrator does something.
	Blocked
	// Unmanaged means that the operator does not work on the host. The conditions remain unchanged.
	Unmanaged
	// Working means that a job works on the host. The end of the job triggers the next reconcile. Until then, the
	// conditions remain unchanged.
	Working
	// Continue means that the status must be written before the phases continue, immediately.
	Continue
	// Done means that the host is in its desired state.
	Done
)

// IsFailure reports whether something failed.
func (o Outcome) IsFailure() bool { return o == Retry || o == ChangeFailed }

// NeedsEvent reports whether an event informs administrators of the result.
func (o Outcome) NeedsEvent() bool { return o.IsFailure() || o == Blocked }
