package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ProcessOptions are how an operator runs in a process of its own.
type ProcessOptions struct {
	// Program is the operator's executable.
	Program string
	// Log is the file that its log is appended to.
	Log string
	// Flags are added to those that it needs in any case, and Environ to the environment of this process.
	Flags, Environ []string
}

// OperatorProcess is the operator as it is shipped, in a process of its own.
type OperatorProcess struct {
	// Started is when it was started.
	Started time.Time

	rig     *Rig
	options ProcessOptions
	command *exec.Cmd
	done    chan struct{}
	err     error // how it ended, once done is closed
}

// OperatorVersion returns the version that an operator's executable prints.
func OperatorVersion(ctx context.Context, program string) (string, error) {
	output, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("run %s version: %w", program, err)
	}
	_, rest, _ := strings.Cut(string(output), ` version: "`)
	version, _, found := strings.Cut(rest, `"`)
	if !found {
		return "", fmt.Errorf("%s version has no version in its output %q", program, output)
	}
	return version, nil
}

// StartOperator starts the operator's executable with the flags of its Deployment and the rights of its ServiceAccount,
// after InstallOperator. The hosts must be in a RealNetwork. It is the caller's to end.
func (r *Rig) StartOperator(o ProcessOptions) (*OperatorProcess, error) {
	r.mu.Lock()
	config, namespace := r.operatorConfig, r.namespace
	r.mu.Unlock()
	if config == nil {
		return nil, errors.New("start the operator: it is not installed")
	}
	kubeconfig := filepath.Join(r.dir, "operator.kubeconfig")
	if err := r.cluster.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w: choose another file", err)
	}
	defer log.Close() // the process has its own
	p := &OperatorProcess{rig: r, options: o, Started: time.Now(), done: make(chan struct{})}
	p.command = exec.Command(o.Program, append([]string{"--kubeconfig=" + kubeconfig, "--payload-dir=" + r.payloadDir,
		"--health-probe-bind-address=:8081"}, o.Flags...)...)
	p.command.Env = append(append(os.Environ(), "WATCH_NAMESPACE="+namespace), o.Environ...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() {
		if p.err = p.command.Wait(); p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
	}()
	return p, nil
}

// Again starts the same operator once more, after this one has ended.
func (p *OperatorProcess) Again() (*OperatorProcess, error) { return p.rig.StartOperator(p.options) }

// PID returns the number of the process.
func (p *OperatorProcess) PID() int { return p.command.Process.Pid }

// Done is closed when the operator has ended.
func (p *OperatorProcess) Done() <-chan struct{} { return p.done }

// Err says how the operator ended, when Done is closed.
func (p *OperatorProcess) Err() error { return p.err }

// Failure says how the operator ended, with the end of its log, when Done is closed.
func (p *OperatorProcess) Failure() error {
	const lines = 15
	data, err := os.ReadFile(p.options.Log)
	if err != nil {
		return fmt.Errorf("the operator ended (%w), and its log cannot be read: %w", p.err, err)
	}
	all := bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
	return fmt.Errorf("the operator ended (%w); its log %s ends with:\n%s", p.err, p.options.Log,
		bytes.Join(all[max(0, len(all)-lines):], nil))
}

// Stop asks the operator to end, as Kubernetes does, and waits for it.
func (p *OperatorProcess) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	<-p.done
}

// Kill ends the operator at once.
func (p *OperatorProcess) Kill() {
	_ = p.command.Process.Kill() // fails only when it has ended
	<-p.done
}
