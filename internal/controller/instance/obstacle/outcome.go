package obstacle

// Outcome says how a reconcile continues after an obstacle.
type Outcome int

const (
	// TryAgain means that something failed. The phases run again after delays that grow.
	TryAgain Outcome = iota
	// ChangeFailed means that the host does not work after a change. The phases run again, and the failures are counted:
	// after some of them the host is rolled back.
	ChangeFailed
	// Wait means that something is on its way. The phases run again when it has come, or after the obstacle's time.
	Wait
	// NeedsAdministrator means that the obstacle lasts until an administrator does something.
	NeedsAdministrator
	// LeftAlone means that nobody works on the host, and its conditions stay as they are.
	LeftAlone
	// NothingToDo means that the host is in its desired state.
	NothingToDo
)

// IsFailure reports whether something failed.
func (o Outcome) IsFailure() bool { return o == TryAgain || o == ChangeFailed }

// IsNews reports whether an event informs administrators of the obstacle.
func (o Outcome) IsNews() bool { return o.IsFailure() || o == NeedsAdministrator }
