//go:build windows

// Package pipe listens on named pipes, under Wine as on Windows, with CreateNamedPipeW and overlapped
// ConnectNamedPipe. It replaces the listener of go-winio, which never accepts under Wine: go-winio reserves the
// pipe name with an instance opened for neither reading nor writing. Windows keeps that instance disconnected,
// but Wine connects the first client to it. Clients of go-winio work.
package pipe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

const bufferBytes = 64 << 10

// Listener is a net.Listener for one pipe.
type Listener struct {
	name string

	mu     sync.Mutex // held by Accept
	next   windows.Handle
	closed windows.Handle // event
	once   sync.Once
}

// Listen creates the pipe (\\.\pipe\name). On Windows it fails if another process serves the pipe; Wine allows
// both.
func Listen(name string) (*Listener, error) {
	l := &Listener{name: name}
	var err error
	if l.next, err = l.newInstance(windows.FILE_FLAG_FIRST_PIPE_INSTANCE); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	if l.closed, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", name, err), windows.CloseHandle(l.next))
	}
	return l, nil
}

// newInstance creates another instance of the pipe for a client.
func (l *Listener) newInstance(flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(l.name)
	if err != nil {
		return 0, err
	}
	return windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED|flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_READMODE_BYTE|windows.PIPE_WAIT|windows.PIPE_REJECT_REMOTE_CLIENTS,
		windows.PIPE_UNLIMITED_INSTANCES, bufferBytes, bufferBytes, 0, nil)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.connectClient(); err != nil {
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: l.Addr(), Err: err}
	}
	file := os.NewFile(uintptr(l.next), l.name)
	next, err := l.newInstance(0)
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: l.Addr(), Err: errors.Join(err, file.Close())}
	}
	l.next = next
	return connection{file}, nil
}

// connectClient waits for a client of the next instance.
func (l *Listener) connectClient() error {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(event) //nolint:errcheck // nothing that a caller could do
	for {
		overlapped := windows.Overlapped{HEvent: event}
		err := windows.ConnectNamedPipe(l.next, &overlapped)
		switch {
		case err == nil, errors.Is(err, windows.ERROR_PIPE_CONNECTED):
			return nil
		case errors.Is(err, windows.ERROR_IO_PENDING):
			return l.awaitClient(&overlapped)
		case !errors.Is(err, windows.ERROR_NO_DATA):
			return err
		}
		// A client has connected and disconnected.
		if err := windows.DisconnectNamedPipe(l.next); err != nil {
			return err
		}
	}
}

// awaitClient waits until a client has connected, or the listener is closed.
func (l *Listener) awaitClient(overlapped *windows.Overlapped) error {
	which, err := windows.WaitForMultipleObjects([]windows.Handle{overlapped.HEvent, l.closed}, false, windows.INFINITE)
	if err == nil && which == windows.WAIT_OBJECT_0 {
		return nil
	}
	_ = windows.CancelIoEx(l.next, overlapped) // The instance ends with its handle.
	var transferred uint32
	_ = windows.GetOverlappedResult(l.next, overlapped, &transferred, true) // Until then the kernel may write to overlapped.
	_ = windows.CloseHandle(l.next)
	return errors.Join(err, net.ErrClosed)
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() { err = windows.SetEvent(l.closed) })
	return err
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return address(l.name) }

type address string

// Network implements net.Addr.
func (address) Network() string { return "pipe" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// connection is one client.
type connection struct{ *os.File }

var _ net.Conn = connection{}

// LocalAddr implements net.Conn.
func (c connection) LocalAddr() net.Addr { return address(c.Name()) }

// RemoteAddr implements net.Conn.
func (c connection) RemoteAddr() net.Addr { return address(c.Name()) }

// SetDeadline implements net.Conn.
func (c connection) SetDeadline(t time.Time) error { return c.File.SetDeadline(t) }
