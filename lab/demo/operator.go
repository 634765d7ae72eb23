package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

type operatorOptions struct {
	program, kubeconfig, payload, cache, namespace, log string
}

// operatorProcess is the operator as it is shipped, in a process of its own.
type operatorProcess struct {
	command *exec.Cmd
	log     string
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
	log, err := os.Create(o.log)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w: choose another file with --operator-log", err)
	}
	defer log.Close() // the process has its own
	p := &operatorProcess{log: o.log, done: make(chan struct{})}
	p.command = exec.Command(o.program, "--kubeconfig="+o.kubeconfig, "--payload-dir="+o.payload, "--cache-dir="+o.cache, "--health-probe-bind-address=:8081")
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
	data, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("the operator ended (%w), and its log cannot be read: %w", p.err, err)
	}
	all := bytes.SplitAfter(bytes.TrimSpace(data), []byte("\n"))
	return fmt.Errorf("the operator ended (%w); its log %s ends with:\n%s", p.err, p.log, bytes.Join(all[max(0, len(all)-lines):], nil))
}

func (p *operatorProcess) kill() {
	_ = p.command.Process.Kill() // fails only when it has ended
	<-p.done
}
