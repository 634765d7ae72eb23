package instance

// outcome says how a reconcile goes on after an obstacle.
type outcome int

const (
	// tryAgain: something failed. The phases run again after delays that grow.
	tryAgain outcome = iota
	// changeFailed: what the host was brought to does not work. The phases run again, and the failures are counted: after some of them the host is
	// brought back.
	changeFailed
	// wait: something is on its way. The phases run again when it has come, or after the obstacle's time.
	wait
	// needsAdministrator: the obstacle lasts until an administrator does something.
	needsAdministrator
	// leftAlone: nobody works on the host, and its conditions stay as they are.
	leftAlone
	// nothingToDo: the host is what it should be.
	nothingToDo
)

// isFailure reports whether something failed.
func (o outcome) isFailure() bool { return o == tryAgain || o == changeFailed }

// isNews reports whether an administrator is to read of it in an event.
func (o outcome) isNews() bool { return o.isFailure() || o == needsAdministrator }
