package soak

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/lab/openshift"
)

// Lives of certificates. The operator renews those of cloud-node-manager by its own clock, at 75 to 85 percent of their
// life, and the API server must take them for good by the real one all the time. So their end is beyond the last day,
// and they have begun so long ago that a third of a month later they are due.
const (
	managerPrefix = "system:cloud-node-manager:"
	// managersPast is the part of their life that is over when they are issued.
	managersPast = 0.65
)

// validity says how long a certificate is good for.
func (l *lab) validity(user string, now time.Time) openshift.Validity {
	if strings.HasPrefix(user, managerPrefix) {
		left := time.Duration(l.options.Days+3) * day
		virtual := l.clock.Now()
		whole := time.Duration(float64(left) / (1 - managersPast))
		return openshift.Validity{NotBefore: virtual.Add(left - whole), NotAfter: virtual.Add(left)}
	}
	return openshift.Validity{NotBefore: now, NotAfter: now.Add(clientLife)}
}
