package result

// Outcome says how a reconcile continues after a result.
type Outcome int

const (
	// TryAgain means that something failed. The phases run again after delays that grow.
	TryAgain Outcome = iota
	// ChangeFailed means that the host does not work after a change. The phases run again, and the failures are counted:
	// after some of them the host is rolled back.
	ChangeFailed
	// Wait means that something is on its way. The phases run again when it has come, or after the result's time.
	Wait
	// NeedsAdministrator means that the result lasts until an administrator does something.
	NeedsAdministrator
	// LeftAlone means that nobody works on the host, and its conditions stay as they are.
	LeftAlone
	// Working means that a job works on the host. Its end triggers the next reconcile, and until then all stays as it is.
	Working
	// Again means that the status must be written before the phases go on, at once.
	Again
	// NothingToDo means that the host is in its desired state.
	NothingToDo
)

// IsFailure reports whether something failed.
func (o Outcome) IsFailure() bool { return o == TryAgain || o == ChangeFailed }

// IsNews reports whether an event informs administrators of the result.
func (o Outcome) IsNews() bool { return o.IsFailure() || o == NeedsAdministrator }
