package monitoring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// urlPoll is how often the file with the address is looked for.
const urlPoll = 20 * time.Millisecond

// process is one of the programs. Its output goes to a file.
type process struct {
	command *exec.Cmd // its state says how it ended, once done is closed
	log     string
	done    chan struct{}
}

func startProcess(program, log string, args []string, listener *net.TCPListener) (*process, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	defer output.Close() // the process has its own
	p := &process{command: exec.Command(program, args...), log: log, done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	if listener != nil {
		file, err := listener.File()
		if err != nil {
			return nil, fmt.Errorf("hand over the listener %s: %w", listener.Addr(), err)
		}
		defer file.Close()
		p.command.ExtraFiles = []*os.File{file}
		p.command.Args = append(p.command.Args, "--listen-fd=3") // after the standard three
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the lab, which ends it
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%w: run `make build/%s`", err, filepath.Base(program))
	}
	go func() {
		_ = p.command.Wait() // see failure
		close(p.done)
	}()
	return p, nil
}

// waitForFile returns the content of the file when it is there, and fails when the process ends before or ctx does.
func (p *process) waitForFile(ctx context.Context, path string) (string, error) {
	ticker := time.NewTicker(urlPoll)
	defer ticker.Stop()
	for {
		content, err := os.ReadFile(path)
		if len(content) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return string(content), err
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return "", p.failure()
		case <-ctx.Done():
			return "", fmt.Errorf("%w; its log ends with:\n%s", context.Cause(ctx), p.tail())
		}
	}
}

// failure says how the process ended, when done is closed.
func (p *process) failure() error {
	return fmt.Errorf("%s ended (%v); its log %s ends with:\n%s", filepath.Base(p.command.Path), p.command.ProcessState, p.log,
		p.tail())
}

// stop ends the process.
func (p *process) stop() {
	_ = p.command.Process.Kill() // fails only when it has ended; nobody reads the samples again
	<-p.done
}

// tail returns the end of the log.
func (p *process) tail() string {
	const lines = 15
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], nil))
}
