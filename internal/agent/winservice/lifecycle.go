// Package winservice runs a program as a Windows service: it answers the service control manager while the program
// works.
package winservice

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Work is what a service does until ctx is done. It calls ready when it works. An end before ctx is done, whatever the
// exit code, is a failure of the service.
type Work func(ctx context.Context, ready func()) (exitCode int)

const (
	// StopLimit is how long the work may take to end after the service was told to stop. Then its process ends without
	// it: whatever the agent does may be cut off at any moment.
	StopLimit = 15 * time.Second
	// beat is how often the service control manager learns that a start or stop goes on.
	beat = 2 * time.Second
	// StartHint is how long a start may take until its next sign of life; the service control manager gets it.
	StartHint = 10 * time.Second
)

// state is what the service reports to the service control manager.
type state int

const (
	startPending state = iota
	running
	stopPending
)

// lifecycle runs the work, tells its states, and ends it when stop is closed.
type lifecycle struct {
	work  Work
	clock clock.WithTicker
	stop  <-chan struct{}
	// tell reports a state. The checkpoint counts the signs of life of a state that passes.
	tell func(s state, checkpoint uint32)
}

// run returns the work's exit code. failed is true when the work has ended without having been told to.
func (l *lifecycle) run(ctx context.Context) (exitCode int, failed bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan struct{}), make(chan int, 1)
	go func() { ended <- l.work(ctx, sync.OnceFunc(func() { close(ready) })) }()
	ticker := l.clock.NewTicker(beat)
	defer ticker.Stop()
	var (
		now        = startPending
		checkpoint uint32
		works      <-chan struct{} = ready
		stop                       = l.stop
		limit      <-chan time.Time
	)
	enter := func(s state) { now, checkpoint = s, 0; l.tell(now, checkpoint) }
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
			limit = l.clock.After(StopLimit)
		case code := <-ended:
			return code, now != stopPending
		case <-limit:
			return 0, false
		case <-ticker.C():
			if now != running {
				checkpoint++
				l.tell(now, checkpoint)
			}
		}
	}
}
