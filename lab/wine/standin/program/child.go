//go:build windows

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// child is a process that the program has started.
type child struct {
	process *os.Process
	ended   chan struct{}
}

// Spawn implements node.Machine.
func (m *machine) Spawn(path string, args ...string) (node.Child, error) {
	command := exec.Command(path, args...)
	if err := command.Start(); err != nil {
		return nil, err
	}
	c := &child{process: command.Process, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_ = command.Wait() // The exit status is unused.
	}()
	return c, nil
}

// PID returns the number by which a later process finds the child.
func (c *child) PID() int { return c.process.Pid }

// Alive implements node.Child.
func (c *child) Alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// Exit implements node.Child.
func (c *child) Exit(int) {
	_ = c.process.Kill() // The process has ended already or ends now.
	<-c.ended
}

// Run implements node.Machine.
func (m *machine) Run(ctx context.Context, output io.Writer, path string, args ...string) (int, error) {
	command := exec.CommandContext(ctx, path, args...)
	command.Stdout, command.Stderr = output, output
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
