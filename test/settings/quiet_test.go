package settings

import (
	"time"

	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// quietTime is the minimum time without activity for a cluster to count as silent.
const quietTime = 1200 * time.Millisecond

// silent waits for a period in which the operator requests only its leases from the API server, and connects to no
// host.
func (l lab) silent() {
	l.Helper()
	rigtest.Silent(l.T, l.Rig, quietTime, nil)
}
