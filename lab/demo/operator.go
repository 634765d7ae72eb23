package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

type operatorOptions struct {
	program, kubeconfig, payload, namespace, log string
	metrics                                      []string // flags
}

// operatorProcess is the operator as it is shipped, in a process of its own.
type operatorProcess struct {
	command *exec.Cmd
	options operatorOptions
	started time.Time
	done    chan struct{}
	err     error // how it ended, once done is closed
}

// operatorVersion asks the operator what it is.
func operatorVersion(ctx context.Context, program string) (string, error) {
	output, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("run %s version: %w", program, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// startOperator starts the operator with the flags of its Deployment, and the lab's paths.
func startOperator(o operatorOptions) (*operatorProcess, error) {
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w: choose another file with --operator-log", err)
	}
	defer log.Close() // the process has its own
	p := &operatorProcess{options: o, started: time.Now(), done: make(chan struct{})}
	args := append([]string{"--kubeconfig=" + o.kubeconfig, "--payload-dir=" + o.payload,
		"--health-probe-bind-address=:8081"}, o.metrics...)
	p.command = exec.Command(o.program, args...)
	p.command.Env = append(os.Environ(), "WATCH_NAMESPACE="+o.namespace)
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

// failure says how the operator ended, when done is closed.
func (p *operatorProcess) failure() error {
	const lines = 15
	data, err := os.ReadFile(p.options.log)
	if err != nil {
		return fmt.Errorf("the operator ended (%w), and its log cannot be read: %w", p.err, err)
	}
	all := bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
	return fmt.Errorf("the operator ended (%w); its log %s ends with:\n%s", p.err, p.options.log,
		bytes.Join(all[max(0, len(all)-lines):], nil))
}

// leastLife is how long an operator must have lived to be started again: one that ends at once does so again.
const leastLife = 5 * time.Second

// restartOperator starts an operator that has ended again, as its Deployment would: who kills it sees that nothing is
// lost.
func (d *demo) restartOperator() error {
	ended := d.operator
	if d.once || time.Since(ended.started) < leastLife {
		return ended.failure()
	}
	d.output.settle()
	d.output.step("the operator ended (%v) and is started again", ended.err)
	next, err := startOperator(ended.options)
	if err == nil {
		d.operator = next
	}
	return err
}

func (p *operatorProcess) kill() {
	_ = p.command.Process.Kill() // fails only when it has ended
	<-p.done
}
