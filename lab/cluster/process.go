package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// readyPoll is how often the ready file is looked for.
const readyPoll = 10 * time.Millisecond

// process is the control plane's. Its output goes to a file.
type process struct {
	command *exec.Cmd
	log     string
	done    chan struct{}
	// err is how it ended, once done is closed.
	err error
}

// startProcess starts the executable. It is killed with this process, and is in a process group
// of its own, so that an interrupt from the terminal is left to this process to handle.
func startProcess(binary string, args []string, files []*os.File, log string) (*process, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("make the control plane's log: %w", err)
	}
	defer output.Close() // the process has its own
	p := &process{command: exec.Command(binary, args...), log: log, done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	// Collecting garbage seldom saves a twelfth of its work, which is most of what a test of ours costs, for 250 MB.
	p.command.Env = append(os.Environ(), "GOGC=400")
	p.command.ExtraFiles = files
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	return p, nil
}

// run starts the process and waits for its end on one thread: to the kernel a parent is a thread,
// and the process is killed when the thread that started it ends.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.command.Start()
	started <- err
	if err == nil {
		p.err = p.command.Wait()
	}
	close(p.done)
}

// waitForFile returns when the file is there, and fails when the process ends before or ctx does.
func (p *process) waitForFile(ctx context.Context, path string) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return fmt.Errorf("the control plane ended while it booted: %w; its log ends with:\n%s", p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for the control plane: %w; its log ends with:\n%s", context.Cause(ctx), p.tail())
		}
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill() // fails only when it has ended
	<-p.done
}

const tailLines = 15

// tail returns the end of the log, without the informational lines.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if !isInfo(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "")
}

// isInfo recognizes lines such as "I0102 15:04:05.000000 ...".
func isInfo(line string) bool {
	return len(line) > 5 && line[0] == 'I' && line[1] >= '0' && line[1] <= '9' && line[5] == ' '
}
