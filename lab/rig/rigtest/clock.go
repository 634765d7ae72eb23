package rigtest

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/rig"
)

// FastClock returns a rig.FastClock that runs until the test ends.
func FastClock(t *testing.T) *clocktesting.FakeClock {
	fast, stop := rig.FastClock()
	t.Cleanup(stop)
	return fast
}
