package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// simulated is the view of a process on a simulated machine.
type simulated struct {
	t *table
	p *fake.Process
}

var _ node.Machine = simulated{}

// newProcess returns the programs' view of a process on a simulated machine.
func (t *table) newProcess(p *fake.Process) *node.Process {
	return &node.Process{
		PID: p.PID, Path: p.Path, Args: p.Args, Service: p.Service != "", Environ: p.Environ, Stdout: p.Stdout,
		Stderr: p.Stderr, Host: p.Host,
		Machine: simulated{t, p}, Clock: p.Machine.Clock(t.Clock),
	}
}

// ID implements node.Machine.
func (m simulated) ID() any { return m.p.Machine }

// Name implements node.Machine.
func (m simulated) Name() string { return m.p.Machine.Name() }

// Addresses implements node.Machine.
func (m simulated) Addresses() []string { return m.p.Machine.Addresses() }

// Alive implements node.Machine.
func (m simulated) Alive() bool { return m.p.Alive() }

// ReadFile implements node.Drive.
func (m simulated) ReadFile(path string) ([]byte, error) { return m.p.Machine.Drive().ReadFile(path) }

// WriteFile implements node.Drive.
func (m simulated) WriteFile(path string, data []byte) error {
	return m.p.Machine.Drive().WriteFile(path, data)
}

// Symlink implements node.Drive.
func (m simulated) Symlink(target, link string) error {
	info, err := m.p.Machine.Drive().Stat(link)
	switch {
	case err == nil && info.LinkTarget == "":
		return &fs.PathError{Op: "symlink", Path: link, Err: fs.ErrExist}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return m.p.Machine.Drive().Symlink(target, link)
}

// MkdirAll implements node.Drive.
func (m simulated) MkdirAll(path string) error { return m.p.Machine.Drive().MkdirAll(path) }

// CheckExists implements node.Drive.
func (m simulated) CheckExists(path string) error {
	_, err := m.p.Machine.Drive().Stat(path)
	return err
}

// List implements node.Drive.
func (m simulated) List(path string) ([]string, error) {
	entries, err := m.p.Machine.Drive().ReadDir(path)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names, err
}

// Hold implements node.Drive.
func (m simulated) Hold(path string) error { return m.p.Hold(path) }

// RealPath implements node.Drive.
func (m simulated) RealPath(path string) (string, bool) { return m.p.Machine.RealPath(path) }

// ServeLocal implements node.Network.
func (m simulated) ServeLocal(port int, handler http.Handler) error {
	return m.p.ServeLocal(port, handler)
}

// Listen implements node.Network.
func (m simulated) Listen(port int) (net.Listener, error) { return m.p.Listen(port) }

// ServeRuntime implements node.Network.
func (m simulated) ServeRuntime(endpoint string, status func() host.RuntimeStatus) error {
	return m.p.ServeRuntime(endpoint, status)
}

// CreateNetwork implements node.Network.
func (m simulated) CreateNetwork(_ context.Context, network host.HNSNetwork) error {
	return m.p.CreateNetwork(network)
}

// Spawn implements node.Machine.
func (m simulated) Spawn(path string, args ...string) (node.Child, error) {
	child, err := m.p.Spawn(path, args...)
	if err != nil {
		return nil, err
	}
	return child, nil
}

// Run runs a program as a child until the child ends or is killed, or the parent must stop.
func (m simulated) Run(ctx context.Context, output io.Writer, path string, args ...string) (int, error) {
	content, err := m.p.Machine.Drive().ReadFile(path)
	if err != nil {
		return 0, err
	}
	run, err := m.t.findProgram(content)
	if err != nil {
		return 0, fmt.Errorf("fork/exec %s: %w", path, errors.Join(fake.ErrNotExecutable, err))
	}
	child, err := m.p.Spawn(path, args...)
	if err != nil {
		return 0, err
	}
	child.Stdout, child.Stderr = output, output
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-child.Done(): // the child was killed
			cancel()
		case <-ctx.Done():
		}
	}()
	code := run(ctx, child)
	killed := !child.Alive()
	child.Exit(code)
	cancel()
	<-watched
	if killed {
		return 1, nil
	}
	return code, nil
}
