//go:build windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/Microsoft/hcsshim/hcn"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// machine is the Windows host of the program.
type machine struct {
	host host.Host

	mu      sync.Mutex
	local   map[int]net.Listener // on the loopback address
	closers []io.Closer
}

var _ node.Machine = (*machine)(nil)

func newMachine(h host.Host) *machine { return &machine{host: h, local: map[int]net.Listener{}} }

// close closes the resources that the process has opened.
func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.closers {
		_ = c.Close() // The process ends.
	}
}

func (m *machine) addCloser(c io.Closer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closers = append(m.closers, c)
}

// ID implements node.Machine.
func (m *machine) ID() any { return m }

// Name implements node.Machine.
func (m *machine) Name() string {
	name, err := os.Hostname()
	if err != nil {
		return os.Getenv("COMPUTERNAME")
	}
	return name
}

// Addresses implements node.Machine.
func (m *machine) Addresses() []string {
	info, err := m.host.System.Info(context.Background())
	if err != nil {
		return nil
	}
	return info.Addresses
}

// Alive implements node.Machine.
func (m *machine) Alive() bool { return true }

// ReadFile implements node.Drive.
func (m *machine) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// WriteFile implements node.Drive.
func (m *machine) WriteFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

// Symlink implements node.Drive.
func (m *machine) Symlink(target, link string) error {
	info, err := os.Lstat(link)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink == 0:
		return &fs.PathError{Op: "symlink", Path: link, Err: fs.ErrExist}
	case err == nil:
		if err := os.Remove(link); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.Symlink(target, link)
}

// MkdirAll implements node.Drive.
func (m *machine) MkdirAll(path string) error { return os.MkdirAll(path, 0o755) }

// CheckExists implements node.Drive.
func (m *machine) CheckExists(path string) error {
	_, err := os.Lstat(path)
	return err
}

// List implements node.Drive.
func (m *machine) List(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// OpenLog implements node.Drive.
func (m *machine) OpenLog(path string) (io.Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	m.addCloser(file)
	return file, nil
}

// Hold implements node.Drive.
func (m *machine) Hold(path string) error {
	file, err := os.Open(path)
	if err == nil {
		m.addCloser(file)
	}
	return err
}

// RealPath implements node.Drive.
func (m *machine) RealPath(path string) (string, bool) { return filepath.Clean(path), true }

// serveHTTP serves HTTP in the background.
func (m *machine) serveHTTP(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	m.addCloser(server)
	go func() { _ = server.Serve(listener) }() // It ends when its listener is closed.
}

// ServeLocal implements node.Network.
func (m *machine) ServeLocal(port int, handler http.Handler) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.local[port] = listener
	m.mu.Unlock()
	m.serveHTTP(listener, handler)
	return nil
}

// Listen implements node.Network. It closes a listener for the same port on the loopback address and serves
// that address too: Wine opens Linux sockets, and two of them cannot share a port as on Windows.
func (m *machine) Listen(port int) (net.Listener, error) {
	m.mu.Lock()
	if local := m.local[port]; local != nil {
		_ = local.Close() // It blocks the port and has no pending requests.
		delete(m.local, port)
	}
	m.mu.Unlock()
	listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return nil, err
	}
	m.addCloser(listener)
	return listener, nil
}

// CreateNetwork implements node.Network as hybrid-overlay-node does, through the Host Compute Network API.
func (m *machine) CreateNetwork(_ context.Context, network host.HNSNetwork) error {
	_, subnet, err := net.ParseCIDR(network.Subnet)
	if err != nil {
		return fmt.Errorf("create HNS network %s: %w", network.Name, err)
	}
	gateway := subnet.IP.To4()
	if gateway == nil {
		return fmt.Errorf("create HNS network %s: %s is no IPv4 subnet", network.Name, network.Subnet)
	}
	gateway[3]++
	made := hcn.HostComputeNetwork{
		Type: hcn.NetworkType(network.Type), Name: network.Name, SchemaVersion: hcn.SchemaVersion{Major: 2},
		Ipams: []hcn.Ipam{{Type: "Static", Subnets: []hcn.Subnet{{
			IpAddressPrefix: network.Subnet,
			Routes:          []hcn.Route{{NextHop: gateway.String(), DestinationPrefix: "0.0.0.0/0"}},
		}}}},
	}
	if _, err := made.Create(); err != nil {
		return fmt.Errorf("create HNS network %s: %w", network.Name, err)
	}
	return nil
}
