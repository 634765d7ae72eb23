package winservice

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
	"k8s.io/utils/clock"
)

// control is a service control manager for one service.
type control struct {
	*testing.T
	requests chan svc.ChangeRequest
	changes  chan svc.Status
	exits    chan int // exit codes of the process
	returned chan uint32
}

func startHandler(t *testing.T, work Work) *control {
	c := &control{
		T: t, requests: make(chan svc.ChangeRequest), changes: make(chan svc.Status, 10), exits: make(chan int, 1), returned: make(chan uint32, 1),
	}
	h := &handler{clock: clock.RealClock{}, work: work, exit: func(code int) { c.exits <- code }}
	go func() {
		_, code := h.Execute([]string{"test"}, c.requests, c.changes)
		c.returned <- code
	}()
	return c
}

func receiveValue[V any](t *testing.T, from <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
	}
	return v
}

func idleWork(ctx context.Context, ready func()) int { ready(); <-ctx.Done(); return 0 }

//
func TestExecute(t *testing.T) {
	for name, cmd := range map[string]svc.Cmd{"stop": svc.Stop, "shutdown": svc.Shutdown, "pre-shutdown": svc.PreShutdown} {
		t.Run("a "+name+" ends the service cleanly", func(t *testing.T) {
			c := startHandler(t, idleWork)
			if s := receiveValue(t, c.changes); s.State != svc.StartPending || s.WaitHint == 0 || s.Accepts != 0 {
				t.Errorf("got %+v", s)
			}
			if s := receiveValue(t, c.changes); s.State != svc.Running || s.Accepts != svc.AcceptStop|svc.AcceptShutdown|svc.AcceptPreShutdown {
				t.Errorf("got %+v", s)
			}
			c.requests <- svc.ChangeRequest{Cmd: svc.Interrogate}
			if s := receiveValue(t, c.changes); s.State != svc.Running {
				t.Errorf("asked, it says %+v", s)
			}
			c.requests <- svc.ChangeRequest{Cmd: cmd}
			if s := receiveValue(t, c.changes); s.State != svc.StopPending || s.WaitHint == 0 {
				t.Errorf("got %+v", s)
			}
			if code := receiveValue(t, c.returned); code != 0 || len(c.exits) != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("a failure ends the process with an exit code and reports no stop", func(t *testing.T) {
		for code, want := range map[int]int{0: 1, 1: 1, 3: 3} {
			c := startHandler(t, func(context.Context, func()) int { return code })
			if got := receiveValue(t, c.exits); got != want {
				t.Errorf("exit code %d, want %d", got, want)
			}
		}
	})
}
