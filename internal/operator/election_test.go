package operator

import (
	"testing"
	"time"
)

// The operator cannot renew its Lease during an outage. The time from the last successful renewal to the first
// renewal after the outage may exceed the outage by one retry period on each side.
func TestElection_LeaderToleratesOneMinuteOutage(t *testing.T) {
	election := Election{}.WithDefaults()
	tolerated := election.RenewDeadline.Truncate(election.Retry) - election.Retry
	if tolerated < time.Minute {
		t.Errorf("the operator ends when the API server is away for %s", tolerated)
	}
	if skew := election.Lease - election.RenewDeadline; skew < 30*time.Second {
		t.Errorf("another operator may begin when clocks differ by %s", skew)
	}
	if got := (Election{Retry: time.Second}).WithDefaults(); got.Retry != time.Second || got.Lease != election.Lease {
		t.Errorf("of own durations, it has %+v", got)
	}
}
