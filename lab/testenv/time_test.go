package testenv

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// The start of a process and the reports of a kubelet are comparable only if both are times of the same clock.
func TestProgramClock_ShowsTimeOfHost(t *testing.T) {
	t.Parallel()
	fast := clocktesting.NewFakeClock(time.Now().Add(time.Hour))
	programs := (&Environment{options: Options{Clock: fast}}).programClock()
	before := fast.Now()
	fast.Step(time.Minute)
	if now := programs.Now(); !now.Equal(fast.Now()) || programs.Since(before) != time.Minute {
		t.Errorf("programs show %s, and %s since %s; their host shows %s", now, programs.Since(before), before, fast.Now())
	}
	<-programs.NewTimer(time.Millisecond).C() // although the host's clock stands still
}
