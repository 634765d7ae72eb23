package settings

import (
	"time"

	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// quietPeriod is the minimum time without activity for a cluster to count as silent.
const quietPeriod = 1200 * time.Millisecond

// waitForIdle waits for a period in which the operator requests only its leases from the API server, and connects
// to no host.
func (l lab) waitForIdle() {
	l.Helper()
	e2e.RequireIdle(l.T, l.Environment, quietPeriod, nil)
}
