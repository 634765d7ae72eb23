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
	clock    *clocktesting.FakeClock
	stop     chan struct{}
	reported chan string
	ended    chan string
}

// startWork runs the work as a service.
func startWork(t *testing.T, work Work) *manager {
	t.Helper()
	m := &manager{
		T: t, clock: clocktesting.NewFakeClock(time.Now()), stop: make(chan struct{}), reported: make(chan string, 100), ended: make(chan string, 1),
	}
	names := map[state]string{startPending: "StartPending", running: "Running", stopPending: "StopPending"}
	l := &lifecycle{work: work, clock: m.clock, stop: m.stop, reportState: func(s state, checkpoint uint32) {
		m.reported <- fmt.Sprint(names[s], " ", checkpoint)
	}}
	go func() {
		code, failed := l.run(context.Background())
		m.ended <- fmt.Sprint("exit ", code, ", failed ", failed)
	}()
	m.expectReport("StartPending 0")
	return m
}

func (m *manager) expectReport(want string) {
	m.Helper()
	expectValue(m.T, m.reported, want)
}

func (m *manager) isEnded(want string) {
	m.Helper()
	expectValue(m.T, m.ended, want)
	if len(m.reported) > 0 {
		m.Errorf("told %s", <-m.reported)
	}
}

// isEndedAfterSigns is isEnded for cases where a clock tick may have preceded the end.
func (m *manager) isEndedAfterSigns(want string) {
	m.Helper()
	expectValue(m.T, m.ended, want)
	for len(m.reported) > 0 {
		if got := <-m.reported; !strings.HasPrefix(got, "StopPending ") {
			m.Errorf("told %s", got)
		}
	}
}

func expectValue(t *testing.T, from <-chan string, want string) {
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
		m := startWork(t, func(ctx context.Context, ready func()) int { ready(); <-ctx.Done(); return 0 })
		m.expectReport("Running 0")
		close(m.stop)
		m.expectReport("StopPending 0")
		m.isEnded("exit 0, failed false")
	})
	t.Run("a service whose exit code after a stop does not matter", func(t *testing.T) {
		t.Parallel()
		m := startWork(t, func(ctx context.Context, ready func()) int { ready(); <-ctx.Done(); return 3 })
		m.expectReport("Running 0")
		close(m.stop)
		m.expectReport("StopPending 0")
		m.isEnded("exit 3, failed false")
	})
	t.Run("a service that ends by itself has failed", func(t *testing.T) {
		t.Parallel()
		m := startWork(t, func(context.Context, func()) int { return 2 })
		m.isEnded("exit 2, failed true")
	})
	t.Run("a service that ends by itself has failed even without an exit code", func(t *testing.T) {
		t.Parallel()
		end := make(chan struct{})
		m := startWork(t, func(_ context.Context, ready func()) int { ready(); ready(); <-end; return 0 })
		m.expectReport("Running 0")
		close(end)
		m.isEnded("exit 0, failed true")
	})
	t.Run("a slow start gives signs of life", func(t *testing.T) {
		t.Parallel()
		begin := make(chan struct{})
		m := startWork(t, func(ctx context.Context, ready func()) int { <-begin; ready(); <-ctx.Done(); return 0 })
		m.clock.Step(progressInterval)
		m.expectReport("StartPending 1")
		m.clock.Step(progressInterval)
		m.expectReport("StartPending 2")
		close(begin)
		m.expectReport("Running 0")
		m.clock.Step(10 * progressInterval)
		close(m.stop)
		m.expectReport("StopPending 0")
		m.isEndedAfterSigns("exit 0, failed false")
	})
	t.Run("a stop while it starts", func(t *testing.T) {
		t.Parallel()
		m := startWork(t, func(ctx context.Context, ready func()) int { <-ctx.Done(); ready(); return 0 })
		close(m.stop)
		m.expectReport("StopPending 0")
		m.isEnded("exit 0, failed false")
	})
	t.Run("a slow stop gives signs of life, and is not waited for past its limit", func(t *testing.T) {
		t.Parallel()
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		m := startWork(t, func(_ context.Context, ready func()) int { ready(); <-hang; return 0 })
		m.expectReport("Running 0")
		close(m.stop)
		m.expectReport("StopPending 0")
		awaitWaiters(t, m.clock, 2) // the ticker and the limit
		m.clock.Step(progressInterval)
		m.expectReport("StopPending 1")
		m.clock.Step(progressInterval)
		m.expectReport("StopPending 2")
		m.clock.SetTime(m.clock.Now().Add(StopTimeout - 2*progressInterval))
		m.isEndedAfterSigns("exit 0, failed false")
	})
}

// awaitWaiters waits for the given number of waiters on the clock.
func awaitWaiters(t *testing.T, clock *clocktesting.FakeClock, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); clock.Waiters() < n; {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits on the clock")
		}
	}
}
