// Package node is the view of the stand-in programs of a Windows node on their process and machine: a simulated one
// (lab/standin) or a real Windows, Wine included (lab/wine/standin/program). Paths are Windows paths.
package node

import (
	"context"
	"io"
	"net"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Process is a program that runs in the place of a real one.
type Process struct {
	PID            int
	Path           string   // of the executable
	Args           []string // without the executable
	Service        bool     // it runs as a service
	Environ        map[string]string
	Stdout, Stderr io.Writer
	Host           host.Host
	Machine        Machine
	// Clock is the machine's, which may be wrong; nil for that of the options.
	Clock clock.WithTicker
}

// Machine is the machine of a process, as far as that process reaches it. What a process opens ends with it.
type Machine interface {
	// ID is equal for the processes of one machine, where they share memory.
	ID() any
	// Name is the computer name.
	Name() string
	// Addresses are the machine's IPv4 addresses, the default route's first.
	Addresses() []string

	Drive
	Network

	// Spawn starts a child from the executable at the path. It outlives its parent.
	Spawn(path string, args ...string) (Child, error)
	// Run runs the program of an executable as a child until it ends or ctx is done, and returns its exit code.
	Run(ctx context.Context, output io.Writer, path string, args ...string) (exitCode int, err error)
	// Alive reports whether the process has not ended.
	Alive() bool
}

// Drive is the machine's drive C:.
type Drive interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, data []byte) error
	// Symlink makes a symbolic link. Nothing may be at its path but a link, which it replaces.
	Symlink(target, link string) error
	// MkdirAll makes a folder and those above it.
	MkdirAll(path string) error
	// Exists is nil when something is at the path.
	Exists(path string) error
	// List are the names in a folder, sorted.
	List(path string) ([]string, error)
	// OpenLog opens a file to append to. Its folder must be there.
	OpenLog(path string) (io.Writer, error)
	// Hold keeps a file in use until the process ends.
	Hold(path string) error
	// RealPath is where Go's own file functions find a path; false when they do not.
	RealPath(path string) (string, bool)
}

// Network lets a process serve and make networks on the machine.
type Network interface {
	// ServeLocal answers HTTP on 127.0.0.1:port.
	ServeLocal(port int, handler http.Handler) error
	// Listen opens a port to the outside.
	Listen(port int) (net.Listener, error)
	// ServeRuntime answers the container runtime interface at an endpoint (npipe://./pipe/name).
	ServeRuntime(endpoint string, status func() host.RuntimeStatus) error
	// CreateNetwork makes an HNS network.
	CreateNetwork(ctx context.Context, network host.HNSNetwork) error
}

// Child is a process that was spawned.
type Child interface {
	Alive() bool
	// Exit ends it.
	Exit(code int)
}
