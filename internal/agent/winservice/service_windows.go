package winservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"k8s.io/utils/clock"
)

// accepted are the controls that stop the service. PreShutdown comes before Windows stops the first service of a
// shutdown: a service that repairs others must be gone by then.
const accepted = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown

// Run does the work as the service of that name until the service control manager tells it to stop; then the caller is
// to end the process. It uses StartServiceCtrlDispatcher through golang.org/x/sys/windows/svc, and never asks
// svc.IsWindowsService: what the command line says is surer than a guess from the session and the parent process.
//
// When the work ends by itself the process ends at once with its exit code (1 instead of 0), without reporting that the
// service has stopped: that is what the service control manager counts as a failure and answers with the service's
// recovery actions.
func Run(name string, clock clock.WithTicker, work Work) error {
	err := svc.Run(name, &handler{clock: clock, work: work, exit: os.Exit})
	if errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return fmt.Errorf("run as service %s: this process was not started by the service control manager; start the service instead: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("run as service %s: %w", name, err)
	}
	return nil
}

// handler is the service as package svc sees it.
type handler struct {
	clock clock.WithTicker
	work  Work
	exit  func(code int)
}

// Execute implements svc.Handler. To return is to report that the service has stopped.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, exitCode uint32) {
	reports := &reports{changes: changes}
	stop, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		var once sync.Once
		for {
			select {
			case request := <-requests:
				switch request.Cmd {
				case svc.Interrogate:
					reports.again()
				case svc.Stop, svc.Shutdown, svc.PreShutdown:
					once.Do(func() { close(stop) })
				}
			case <-done:
				return
			}
		}
	}()
	l := &lifecycle{work: h.work, clock: h.clock, stop: stop, tell: reports.tell}
	code, failed := l.run(context.Background())
	if failed {
		h.exit(max(code, 1))
	}
	return false, 0
}

// reports sends the service's status.
type reports struct {
	mu      sync.Mutex
	changes chan<- svc.Status
	last    svc.Status
}

func (r *reports) tell(s state, checkpoint uint32) {
	status := svc.Status{CheckPoint: checkpoint}
	switch s {
	case startPending:
		status.State, status.WaitHint = svc.StartPending, milliseconds(StartHint)
	case stopPending:
		status.State, status.WaitHint = svc.StopPending, milliseconds(StopLimit)
	case running:
		status.State, status.Accepts = svc.Running, accepted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = status
	r.changes <- status
}

func (r *reports) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes <- r.last
}

func milliseconds(d time.Duration) uint32 { return uint32(d / time.Millisecond) } //nolint:gosec // G115: hints of seconds
