package operator

import (
	"testing"
	"time"
)

// The operator is without its Lease for as long as its renewals fail: from the last that went well to the first after
// the outage there may be one retry period more on each side.
func TestAMinuteWithoutAnAPIServerEndsNoLeader(t *testing.T) {
	election := Election{}.WithDefaults()
	tolerated := election.RenewDeadline.Truncate(election.Retry) - election.Retry
	if tolerated < time.Minute {
		t.Errorf("the operator ends when the API server is away for %s", tolerated)
	}
	if skew := election.Lease - election.RenewDeadline; skew < 30*time.Second {
		t.Errorf("another operator may begin when clocks differ by %s", skew)
	}
	if own := (Election{Retry: time.Second}).WithDefaults(); own.Retry != time.Second || own.Lease != election.Lease {
		t.Errorf("of own durations, it has %+v", own)
	}
}
