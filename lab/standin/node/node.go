// Package node defines the interface of the simulated programs of a Windows node to their process and machine:
// a simulated machine (lab/standin) or a real Windows, including Wine (lab/wine/standin/program). Paths are
// Windows paths.
package node

import (
	"context"
	"io"
	"net"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Process is the process of a simulated program.
type Process struct {
	PID            int
	Path           string   // of the executable
	Args           []string // without the executable
	Service        bool     // runs as a service
	Environ        map[string]string
	Stdout, Stderr io.Writer
	Host           host.Host
	Machine        Machine
	// Clock is the clock of the machine, which may be wrong; nil for the clock of the options.
	Clock clock.WithTicker
}

// Machine is the machine of a process, as far as the process can access it. Resources that a process opens are
// closed when the process ends.
type Machine interface {
	// ID is equal for all processes of a machine that share memory.
	ID() any
	// Name is the computer name.
	Name() string
	// Addresses are the IPv4 addresses of the machine, starting with the address of the default route.
	Addresses() []string

	Drive
	Network

	// Spawn starts a child from the executable at the path. The child outlives its parent.
	Spawn(path string, args ...string) (Child, error)
	// Run runs an executable as a child until the child ends or ctx is done, and returns the exit code.
	Run(ctx context.Context, output io.Writer, path string, args ...string) (exitCode int, err error)
	// Alive reports whether the process has not ended.
	Alive() bool
}

// Drive is the machine's drive C:.
type Drive interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, data []byte) error
	// Symlink creates a symbolic link. An existing link at the path is replaced; any other file is an error.
	Symlink(target, link string) error
	// MkdirAll creates a directory and missing parents.
	MkdirAll(path string) error
	// CheckExists returns nil if the path exists.
	CheckExists(path string) error
	// List returns the names in a directory, sorted.
	List(path string) ([]string, error)
	// OpenLog opens a file for appending. The directory must exist.
	OpenLog(path string) (io.Writer, error)
	// Hold keeps a file open until the process ends.
	Hold(path string) error
	// RealPath returns the path for Go's own file functions; false if these functions cannot access the path.
	RealPath(path string) (string, bool)
}

// Network lets a process serve and create networks on the machine.
type Network interface {
	// ServeLocal serves HTTP on 127.0.0.1:port.
	ServeLocal(port int, handler http.Handler) error
	// Listen opens a port for connections from outside.
	Listen(port int) (net.Listener, error)
	// ServeRuntime serves the container runtime interface at an endpoint (npipe://./pipe/name).
	ServeRuntime(endpoint string, status func() host.RuntimeStatus) error
	// CreateNetwork creates an HNS network.
	CreateNetwork(ctx context.Context, network host.HNSNetwork) error
}

// Child is a process that was spawned.
type Child interface {
	Alive() bool
	// Exit ends the child.
	Exit(code int)
}
