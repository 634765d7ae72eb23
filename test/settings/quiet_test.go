package settings

import (
	"time"

	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// quietTime is how long nothing may happen for a cluster to be silent.
const quietTime = 1200 * time.Millisecond

// silent waits until there is a time in which the operator asks the API server for nothing but its leases, and no host
// is contacted.
func (l lab) silent() {
	l.Helper()
	rigtest.Silent(l.T, l.Rig, quietTime, nil)
}
