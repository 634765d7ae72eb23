package hostjobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// Limits of hosts that are worked on at the same time, beside those of the connection pool. Nodes in service take none of
// these slots, so that others do not hold them up.
const (
	firstContacts = 256 // hosts that were never nodes
	retries       = 128 // hosts that have held a slot for long when they were worked on last, and failed
	// firstContactShare is how long a first contact holds its slot at most, if there is one for it among the retries.
	firstContactShare = 15 * time.Minute

	// Hosts that are sent programs at the same time. Each can take 40 MB/s over a round trip of 50 ms, because 2 MiB are under
	// way: a few of them fill what a pod's network and its share of a processor carry, and more would only make all of them
	// finish late. Each takes about 4 MiB of memory. A host that has its agent does not queue behind all that do not.
	agentTransfers   = 8
	payloadTransfers = 16
	// slowTransfers is how many more hosts go on with a transfer that has lasted longer than transferShare: hosts on a slow line
	// do not hold up the others.
	slowTransfers = 48
	transferShare = 2 * time.Minute
)

// slots limit work at the same time. They serve in the order of arrival.
type slots struct {
	first, retry           *semaphore.Weighted
	agents, payloads, slow *semaphore.Weighted
}

func newSlots() slots {
	return slots{
		first: semaphore.NewWeighted(firstContacts), retry: semaphore.NewWeighted(retries),
		agents: semaphore.NewWeighted(agentTransfers), payloads: semaphore.NewWeighted(payloadTransfers),
		slow: semaphore.NewWeighted(slowTransfers),
	}
}

// class is what the operator knows of a host that a job works on.
type class int

const (
	inService class = iota // it was a node before, and answered when it was worked on last; or the job does not connect to it
	newHost                // it was never a node, and has not failed yet
	retried                // the last job has failed after a long time
)

func classOf(run *run, record *record) class {
	switch {
	case !run.job.Kind.onHost():
		return inService
	case record.failed:
		return retried
	case !run.wanted.wasNode:
		return newHost
	}
	return inService
}

// enter waits for the slot of a job, and returns what leaves it.
func (s slots) enter(ctx context.Context, h *Handle, clock clock.WithTicker) (leave func(), err error) {
	const waits = "waits until the work on other hosts has ended"
	switch h.class {
	case newHost:
		return borrow(ctx, s.first, s.retry, firstContactShare, clock, func() { h.Report(Step{Name: string(h.run.job.Kind), Detail: waits, Waits: true}) })
	case retried:
		return borrow(ctx, s.retry, nil, 0, clock, func() {})
	}
	return func() {}, nil
}

// borrow waits for a slot and returns what gives it back. After its share of time, it moves to a slot of another limit, if
// there is one free then.
func borrow(ctx context.Context, limit, late *semaphore.Weighted, share time.Duration, clock clock.WithTicker,
	waits func()) (giveBack func(), err error) {
	if !limit.TryAcquire(1) {
		waits()
		if err := limit.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("wait until the work on other hosts has ended: %w", context.Cause(ctx))
		}
	}
	var mu sync.Mutex
	held := limit
	stop := func() {}
	if late != nil {
		stop = after(clock, share, func() {
			mu.Lock()
			defer mu.Unlock()
			if held == limit && late.TryAcquire(1) {
				limit.Release(1)
				held = late
			}
		})
	}
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		if held != nil {
			held.Release(1)
		}
		held = nil
	}, nil
}

// after calls a function after some time, unless it is stopped before.
func after(clock clock.WithTicker, wait time.Duration, call func()) (stop func()) {
	timer, stopped := clock.NewTimer(wait), make(chan struct{})
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			call()
		case <-stopped:
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}
