package prometheus

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
)

// expiringValidity issues certificates for one host's kubelet and cloud-node-manager that were due for renewal hours
// ago and are valid for another hour.
func expiringValidity(user string, now time.Time) fakeopenshift.Validity {
	if user == "system:node:instance-1" || user == "system:cloud-node-manager:instance-1" {
		return fakeopenshift.Validity{NotBefore: now.Add(-15 * time.Hour), NotAfter: now.Add(time.Hour)}
	}
	return longValidity(user, now)
}

func longValidity(_ string, now time.Time) fakeopenshift.Validity {
	return fakeopenshift.Validity{NotBefore: now, NotAfter: now.AddDate(0, 1, 0)}
}

// startSigner runs the cluster's signer, which renews no certificate until mend is called.
func (l lab) startSigner() (restore func()) {
	l.Helper()
	authority, err := l.Cluster().CSRSigner()
	l.requireNoError(err)
	signer := fakeopenshift.NewSigner(authority, clock.RealClock{}, expiringValidity)
	release := signer.HoldRenewals()
	ctx, stop := context.WithCancel(context.WithoutCancel(l.Context()))
	ended := make(chan error, 1)
	go func() { ended <- signer.Run(ctx, l.Cluster().Config, slog.New(slog.DiscardHandler)) }()
	l.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			l.Error(err)
		}
	})
	return func() {
		signer.SetValidity(longValidity)
		release()
	}
}
