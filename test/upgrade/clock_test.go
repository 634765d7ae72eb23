package upgrade

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// fastClock returns a clock for hosts and operator, about ten times as fast as the real one.
func fastClock(t *testing.T) *clocktesting.FakeClock { return rigtest.FastClock(t) }
