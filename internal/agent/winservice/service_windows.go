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

// accepted are the controls that stop the service. PreShutdown precedes the first service stop of a shutdown: a
// service that repairs other services must have ended by then.
const accepted = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown

// Run runs the work as the named service until the service control manager requests a stop; then the caller
// must end the process. Run uses StartServiceCtrlDispatcher through golang.org/x/sys/windows/svc, and never
// calls svc.IsWindowsService: the command line is more reliable than a guess from the session and the parent
// process.
//
// If the work ends by itself, the process ends at once with its exit code (1 instead of 0), without reporting
// that the service has stopped: the service control manager counts that as a failure and runs the service's
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

// handler implements the service for package svc.
type handler struct {
	clock clock.WithTicker
	work  Work
	exit  func(code int)
}

// Execute implements svc.Handler. The return reports that the service has stopped.
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
					reports.resendStatus()
				case svc.Stop, svc.Shutdown, svc.PreShutdown:
					once.Do(func() { close(stop) })
				}
			case <-done:
				return
			}
		}
	}()
	l := &lifecycle{work: h.work, clock: h.clock, stop: stop, reportState: reports.sendStatus}
	code, failed := l.run(context.Background())
	if failed {
		h.exit(max(code, 1))
	}
	return false, 0
}

// reports sends the status of the service.
type reports struct {
	mu      sync.Mutex
	changes chan<- svc.Status
	last    svc.Status
}

func (r *reports) sendStatus(s state, checkpoint uint32) {
	status := svc.Status{CheckPoint: checkpoint}
	switch s {
	case startPending:
		status.State, status.WaitHint = svc.StartPending, toMilliseconds(StartHint)
	case stopPending:
		status.State, status.WaitHint = svc.StopPending, toMilliseconds(StopTimeout)
	case running:
		status.State, status.Accepts = svc.Running, accepted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = status
	r.changes <- status
}

func (r *reports) resendStatus() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes <- r.last
}

func toMilliseconds(d time.Duration) uint32 { return uint32(d / time.Millisecond) } //nolint:gosec // G115: hints of seconds
