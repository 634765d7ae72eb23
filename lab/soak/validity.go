package soak

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
)

// Validity of certificates. The operator renews the certificates of cloud-node-manager by the virtual clock, at
// 75 to 85 percent of their validity. The API server must accept these certificates by the real clock at all
// times. They therefore expire after the last day, and start so early that they are due after a third of a
// month.
const (
	managerPrefix = "system:cloud-node-manager:"
	// managersPast is the part of the validity that has passed when a certificate is issued.
	managersPast = 0.65
)

// certificateValidity returns the validity of a certificate.
func (l *lab) certificateValidity(user string, now time.Time) fakeopenshift.Validity {
	if strings.HasPrefix(user, managerPrefix) {
		left := time.Duration(l.options.Days+3) * day
		virtual := l.clock.Now()
		lifetime := time.Duration(float64(left) / (1 - managersPast))
		return fakeopenshift.Validity{NotBefore: virtual.Add(left - lifetime), NotAfter: virtual.Add(left)}
	}
	return fakeopenshift.Validity{NotBefore: now, NotAfter: now.Add(clientValidity)}
}
