// Package process runs programs of the lab as processes with output to a file.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// pollInterval is the interval between evaluations of a WaitFor condition.
const pollInterval = 10 * time.Millisecond

// Process is a started program.
type Process struct {
	// Started is the start time.
	Started time.Time

	name    string
	command *exec.Cmd
	log     string
	done    chan struct{}
	err     error // the result, once done is closed
}

// Start starts a command with its output appended to the log. The name is used in errors. The process is killed
// with this process, and has a separate process group, so that only this process receives an interrupt from the
// terminal.
func Start(name string, command *exec.Cmd, log string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the log of %s: %w: choose another file", name, err)
	}
	defer output.Close() // the process has its own copy
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{Started: time.Now(), name: name, command: command, log: log, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run starts the process and waits for its end on one thread: the kernel treats the thread as the parent, and
// kills the process when the thread that started it ends.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	if p.err = p.command.Wait(); p.err == nil {
		p.err = errors.New("exit status 0")
	}
	close(p.done)
}

// PID returns the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Log returns the path of the file with the output.
func (p *Process) Log() string { return p.log }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the result of the process, after Done is closed.
func (p *Process) Err() error { return p.err }

// Failure returns the result of the process with the end of the log, after Done is closed.
func (p *Process) Failure() error {
	return fmt.Errorf("%s ended (%w); its log %s ends with:\n%s", p.name, p.err, p.log, p.logTail())
}

// Stop requests the end of the process by SIGTERM, as Kubernetes does, and waits.
func (p *Process) Stop() { p.signalAndWait(syscall.SIGTERM) }

// Kill ends the process at once.
func (p *Process) Kill() { p.signalAndWait(syscall.SIGKILL) }

func (p *Process) signalAndWait(signal os.Signal) {
	_ = p.command.Process.Signal(signal) // fails only after the end
	<-p.done
}

// WaitFor waits until the condition is true, and returns an error if the process or ctx ends before.
func (p *Process) WaitFor(ctx context.Context, condition func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if done, err := condition(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; its log ends with:\n%s", p.name, context.Cause(ctx), p.logTail())
		}
	}
}

// logTail returns the end of the log, without klog's informational lines, such as "I0102 15:04:05.000000 ...".
func (p *Process) logTail() string {
	const limit = 15
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if len(line) <= 5 || line[0] != 'I' || line[1] < '0' || line[1] > '9' || line[5] != ' ' {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-limit):], "")
}
