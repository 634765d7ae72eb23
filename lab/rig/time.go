package rig

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/lab/virtualtime"
)

// startTime lets virtual time pass until everything but the control plane has ended.
func (r *Rig) startTime(ctx context.Context) error {
	if r.options.VirtualTime == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.options.VirtualTime.Run(ctx, virtualtime.Programs(r.cluster.PID()))
	}()
	r.onClose(func() error {
		cancel()
		<-ended
		return nil
	})
	return nil
}

// programClock returns the clock of the programs of the payload.
func (r *Rig) programClock() clock.WithTicker {
	if r.options.VirtualTime != nil {
		return r.options.VirtualTime
	}
	return clock.RealClock{}
}
