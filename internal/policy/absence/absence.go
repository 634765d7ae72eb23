// Package absence decides when an object that is not there counts as absent. Objects are replaced by deleting them and
// making them again: what depends on them must not go away in between.
package absence

import "time"

// Grace is how long an object must be absent to count as such.
const Grace = 20 * time.Second

// Absence is how long an object has been absent, as far as this process has seen; the zero value is for one that is
// there.
type Absence struct{ since time.Time }

// Continued is after the object was not there.
func (a Absence) Continued(now time.Time) Absence {
	if a.since.IsZero() {
		a.since = now
	}
	return a
}

// Began reports whether the object was not there when it was last looked for.
func (a Absence) Began() bool { return !a.since.IsZero() }

// Left returns the time until the absence will have lasted for the grace; not above zero when it counts, or there is
// none.
func (a Absence) Left(now time.Time, grace time.Duration) time.Duration {
	if a.since.IsZero() {
		return 0
	}
	return grace - now.Sub(a.since)
}
