// Package winservice runs a program as a Windows service and reports its state to the service control manager.
package winservice

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Work runs a service until ctx is done, and calls ready once the service runs. An end before ctx is done is a
// failure of the service, even with exit code 0.
type Work func(ctx context.Context, ready func()) (exitCode int)

const (
	// StopTimeout is the timeout for the work to end after a stop request. Afterwards the process ends anyway:
	// the agent may be interrupted at any moment.
	StopTimeout = 15 * time.Second
	// progressInterval is the interval of progress reports to the service control manager during a start or stop.
	progressInterval = 2 * time.Second
	// StartHint is the wait hint of a start: the maximum time until the next progress report to the service
	// control manager.
	StartHint = 10 * time.Second
)

// state is the state reported to the service control manager.
type state int

const (
	startPending state = iota
	running
	stopPending
)

// lifecycle runs the work, reports its states, and stops the work when stop is closed.
type lifecycle struct {
	work  Work
	clock clock.WithTicker
	stop  <-chan struct{}
	// reportState reports a state. The checkpoint counts the progress reports of a pending state.
	reportState func(s state, checkpoint uint32)
}

// run returns the exit code of the work. Failed is true if the work has ended without a stop request.
func (l *lifecycle) run(ctx context.Context) (exitCode int, failed bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan struct{}), make(chan int, 1)
	go func() { ended <- l.work(ctx, sync.OnceFunc(func() { close(ready) })) }()
	ticker := l.clock.NewTicker(progressInterval)
	defer ticker.Stop()
	var (
		now        = startPending
		checkpoint uint32
		works      <-chan struct{} = ready
		stop                       = l.stop
		limit      <-chan time.Time
	)
	enter := func(s state) { now, checkpoint = s, 0; l.reportState(now, checkpoint) }
	enter(startPending)
	for {
		select {
		case <-works:
			works = nil
			if now == startPending {
				enter(running)
			}
		case <-stop:
			stop = nil
			enter(stopPending)
			cancel()
			limit = l.clock.After(StopTimeout)
		case code := <-ended:
			return code, now != stopPending
		case <-limit:
			return 0, false
		case <-ticker.C():
			if now != running {
				checkpoint++
				l.reportState(now, checkpoint)
			}
		}
	}
}
