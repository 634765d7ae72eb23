package e2e

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// FastClock returns a testenv.FastClock that runs until the test ends.
func FastClock(t *testing.T) *clocktesting.FakeClock {
	fast, stop := testenv.FastClock()
	t.Cleanup(stop)
	return fast
}
