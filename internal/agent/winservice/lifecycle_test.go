package winservice

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// manager is a service control manager that records the reports.
type manager struct {
	*testing.T
	clock *clocktesting.FakeClock
	stop  chan struct{}
	told  chan string
	ended chan string
}

// started runs the work as a service.
func started(t *testing.T, work Work) *manager {
	t.Helper()
	m := &manager{
		T: t, clock: clocktesting.NewFakeClock(time.Now()), stop: make(chan struct{}), told: make(chan string, 100), ended: make(chan string, 1),
	}
	names := map[state]string{startPending: "StartPending", running: "Running", stopPending: "StopPending"}
	l := &lifecycle{work: work, clock: m.clock, stop: m.stop, tell: func(s state, checkpoint uint32) {
		m.told <- fmt.Sprint(names[s], " ", checkpoint)
	}}
	go func() {
		code, failed := l.run(context.Background())
		m.ended <- fmt.Sprint("exit ", code, ", failed ", failed)
	}()
	m.isTold("StartPending 0")
	return m
}

func (m *manager) isTold(want string) {
	m.Helper()
	receive(m.T, m.told, want)
}

func (m *manager) isEnded(want string) {
	m.Helper()
	receive(m.T, m.ended, want)
	if len(m.told) > 0 {
		m.Errorf("told %s", <-m.told)
	}
}

// isEndedAfterSigns is isEnded for cases where a clock tick may have preceded the end.
func (m *manager) isEndedAfterSigns(want string) {
	m.Helper()
	receive(m.T, m.ended, want)
	for len(m.told) > 0 {
		if got := <-m.told; !strings.HasPrefix(got, "StopPending ") {
			m.Errorf("told %s", got)
		}
	}
}

func receive(t *testing.T, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("nothing, want %q", want)
	}
}

//
func TestLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("a service that works and gets a stop request", func(t *testing.T) {
		t.Parallel()
		m := started(t, func(ctx context.Context, ready func()) int { ready(); <-ctx.Done(); return 0 })
		m.isTold("Running 0")
		close(m.stop)
		m.isTold("StopPending 0")
		m.isEnded("exit 0, failed false")
	})
	t.Run("a service whose exit code after a stop does not matter", func(t *testing.T) {
		t.Parallel()
		m := started(t, func(ctx context.Context, ready func()) int { ready(); <-ctx.Done(); return 3 })
		m.isTold("Running 0")
		close(m.stop)
		m.isTold("StopPending 0")
		m.isEnded("exit 3, failed false")
	})
	t.Run("a service that ends by itself has failed", func(t *testing.T) {
		t.Parallel()
		m := started(t, func(context.Context, func()) int { return 2 })
		m.isEnded("exit 2, failed true")
	})
	t.Run("a service that ends by itself has failed even without an exit code", func(t *testing.T) {
		t.Parallel()
		end := make(chan struct{})
		m := started(t, func(_ context.Context, ready func()) int { ready(); ready(); <-end; return 0 })
		m.isTold("Running 0")
		close(end)
		m.isEnded("exit 0, failed true")
	})
	t.Run("a slow start gives signs of life", func(t *testing.T) {
		t.Parallel()
		begin := make(chan struct{})
		m := started(t, func(ctx context.Context, ready func()) int { <-begin; ready(); <-ctx.Done(); return 0 })
		m.clock.Step(beat)
		m.isTold("StartPending 1")
		m.clock.Step(beat)
		m.isTold("StartPending 2")
		close(begin)
		m.isTold("Running 0")
		m.clock.Step(10 * beat)
		close(m.stop)
		m.isTold("StopPending 0")
		m.isEndedAfterSigns("exit 0, failed false")
	})
	t.Run("a stop while it starts", func(t *testing.T) {
		t.Parallel()
		m := started(t, func(ctx context.Context, ready func()) int { <-ctx.Done(); ready(); return 0 })
		close(m.stop)
		m.isTold("StopPending 0")
		m.isEnded("exit 0, failed false")
	})
	t.Run("a slow stop gives signs of life, and is not waited for past its limit", func(t *testing.T) {
		t.Parallel()
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		m := started(t, func(_ context.Context, ready func()) int { ready(); <-hang; return 0 })
		m.isTold("Running 0")
		close(m.stop)
		m.isTold("StopPending 0")
		waiters(t, m.clock, 2) // the ticker and the limit
		m.clock.Step(beat)
		m.isTold("StopPending 1")
		m.clock.Step(beat)
		m.isTold("StopPending 2")
		m.clock.SetTime(m.clock.Now().Add(StopLimit - 2*beat))
		m.isEndedAfterSigns("exit 0, failed false")
	})
}

// waiters waits for the given number of waiters on the clock.
func waiters(t *testing.T, clock *clocktesting.FakeClock, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); clock.Waiters() < n; {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits on the clock")
		}
	}
}
