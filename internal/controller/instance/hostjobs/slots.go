package hostjobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

// Limits of concurrent work on hosts, in addition to those of the connection pool. Nodes in service need none of
// these slots, so work on other hosts does not delay them.
const (
	maxFirstContacts = 256 // hosts that were never nodes
	maxRetries       = 128 // hosts with a last job that failed after holding a slot for long
	// firstContactTimeShare is the maximum time that a first contact holds its slot, if a retry slot is free.
	firstContactTimeShare = 15 * time.Minute

	// Limits of concurrent transfers. Each transfer can reach 40 MB/s over a round trip of 50 ms, because 2 MiB
	// are in flight. A few transfers saturate the network and the CPU share of a pod, and more would only delay
	// all of them. Each needs about 4 MiB of memory. Hosts with an agent do not queue behind hosts without one.
	maxAgentTransfers   = 8
	maxPayloadTransfers = 16
	// maxSlowTransfers is the maximum number of additional transfers that have lasted longer than transferTimeShare.
	// The extra slots keep hosts with a slow connection from delaying other hosts.
	maxSlowTransfers  = 48
	transferTimeShare = 2 * time.Minute
)

// slots limit concurrent work. Requests are served in the order of arrival.
type slots struct {
	first, retry           *semaphore.Weighted
	agents, payloads, slow *semaphore.Weighted
}

func newSlots() slots {
	return slots{
		first: semaphore.NewWeighted(maxFirstContacts), retry: semaphore.NewWeighted(maxRetries),
		agents: semaphore.NewWeighted(maxAgentTransfers), payloads: semaphore.NewWeighted(maxPayloadTransfers),
		slow: semaphore.NewWeighted(maxSlowTransfers),
	}
}

// class is the class of a host for the slots of a job.
type class int

const (
	inService class = iota // a host that was configured as a node and responded to the last job, or a job without a connection
	newHost                // a host that was never a node and has not failed yet
	retried                // a host with a last job that failed after a long time
)

func classOf(run *run, record *record) class {
	switch {
	case !run.job.Kind.isOnHost():
		return inService
	case record.failed:
		return retried
	case !run.desired.wasNode:
		return newHost
	}
	return inService
}

// acquireForJob waits for the slot of a job, and returns the function that releases the slot.
func (s slots) acquireForJob(ctx context.Context, h *Handle, clock clock.WithTicker) (leave func(), err error) {
	const waits = "waiting for the jobs on other hosts"
	switch h.class {
	case newHost:
		return acquireSlot(ctx, s.first, s.retry, firstContactTimeShare, clock, func() { h.Report(Step{Name: string(h.run.job.Kind), Detail: waits, Waits: true}) })
	case retried:
		return acquireSlot(ctx, s.retry, nil, 0, clock, func() {})
	}
	return func() {}, nil
}

// acquireSlot acquires a slot from limit, and returns the function that releases the slot. After its share of time,
// the slot is exchanged for a slot of late, if late has a free slot.
func acquireSlot(ctx context.Context, limit, late *semaphore.Weighted, share time.Duration, clock clock.WithTicker,
	waits func()) (giveBack func(), err error) {
	if !limit.TryAcquire(1) {
		waits()
		if err := limit.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("wait for a worker slot: %w", context.Cause(ctx))
		}
	}
	var mu sync.Mutex
	held := limit
	stop := func() {}
	if late != nil {
		stop = callAfter(clock, share, func() {
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

// callAfter calls a function after a delay, unless stopped before.
func callAfter(clock clock.WithTicker, wait time.Duration, call func()) (stop func()) {
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
