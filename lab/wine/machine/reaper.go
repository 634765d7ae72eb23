//go:build linux

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// reaper waits for all processes, as the first process must, because it inherits all orphans. It detects when
// no process is left.
type reaper struct {
	mu       sync.Mutex
	statuses map[int]chan<- int // of processes that the reaper started
	alone    chan struct{}      // closed while there is no other process
}

func newReaper() *reaper {
	r := &reaper{statuses: map[int]chan<- int{}, alone: make(chan struct{})}
	close(r.alone)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			r.reapProcesses()
		}
	}()
	return r
}

// start starts a process. The channel receives the exit status, or the negated number of the signal that ended
// the process.
func (r *reaper) start(program string, args []string, attributes *os.ProcAttr) (<-chan int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	process, err := os.StartProcess(program, args, attributes)
	if err != nil {
		return nil, err
	}
	status := make(chan int, 1)
	r.statuses[process.Pid] = status
	select {
	case <-r.alone:
		r.alone = make(chan struct{})
	default:
	}
	return status, process.Release()
}

func (r *reaper) reapProcesses() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // ECHILD: no child processes
			select {
			case <-r.alone:
			default:
				close(r.alone)
			}
			return
		case pid == 0:
			return
		}
		code := status.ExitStatus()
		if status.Signaled() {
			code = -int(status.Signal())
		}
		if report, ok := r.statuses[pid]; ok {
			report <- code
			delete(r.statuses, pid)
		}
	}
}

// waitUntilAlone waits until this process is the only one; false on timeout.
func (r *reaper) waitUntilAlone(limit time.Duration) bool {
	r.mu.Lock()
	nobody := r.alone
	r.mu.Unlock()
	select {
	case <-nobody:
		return true
	case <-time.After(limit):
		return false
	}
}

// killAll kills all processes of the host except this one.
func killAll() { _ = syscall.Kill(-1, syscall.SIGKILL) }
