package upgrade

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// fastClock returns a clock for hosts and operator that is about ten times as fast as the real clock.
func fastClock(t *testing.T) *clocktesting.FakeClock { return e2e.FastClock(t) }
