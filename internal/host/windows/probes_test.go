//go:build windows

package windows

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
)

// pipeConnection is the server end of a named pipe.
type pipeConnection struct{ *os.File }

// LocalAddr implements net.Conn.
func (pipeConnection) LocalAddr() net.Addr { return &net.UnixAddr{} }

// RemoteAddr implements net.Conn.
func (pipeConnection) RemoteAddr() net.Addr { return &net.UnixAddr{} }

// acceptPipe creates a pipe and returns a channel with the connection of its only client.
func acceptPipe(t *testing.T, path string) <-chan net.Conn {
	t.Helper()
	const access, wait = windows.PIPE_ACCESS_DUPLEX | windows.FILE_FLAG_OVERLAPPED,
		windows.PIPE_TYPE_BYTE | windows.PIPE_WAIT
	pipe, err := windows.CreateNamedPipe(windows.StringToUTF16Ptr(path), access, wait, 1, 4096, 4096, 0, nil)
	requireNoError(t, err)
	connected, err := windows.CreateEvent(nil, 1, 0, nil)
	requireNoError(t, err)
	accepted := make(chan net.Conn, 1)
	pending := &windows.Overlapped{HEvent: connected}
	err = windows.ConnectNamedPipe(pipe, pending)
	if !errors.Is(err, windows.ERROR_IO_PENDING) && !errors.Is(err, windows.ERROR_PIPE_CONNECTED) {
		requireNoError(t, err)
	}
	go func() {
		_, _ = windows.WaitForSingleObject(connected, windows.INFINITE)
		pending.HEvent = 0
		accepted <- pipeConnection{os.NewFile(uintptr(pipe), path)}
	}()
	return accepted
}

// oneConnection is a listener for a single connection.
type oneConnection struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *oneConnection) Close() error   { close(l.closed); return nil }
func (l *oneConnection) Addr() net.Addr { return &net.UnixAddr{} }

func TestProbes(t *testing.T) {
	t.Run("a pipe that nobody listens on is not there", func(t *testing.T) {
		_, err := probes{}.ContainerRuntime(t.Context(), "npipe://./pipe/wmco-no-such-pipe")
		requireError(t, err, fs.ErrNotExist)
	})
	t.Run("a container runtime is asked over its pipe", func(t *testing.T) {
		name := "wmco-probes-test-" + strconv.Itoa(os.Getpid())
		listener := &oneConnection{make(chan net.Conn, 1), make(chan struct{})}
		accepted := acceptPipe(t, `\\.\pipe\`+name)
		go func() { listener.connections <- <-accepted }()
		s := grpc.NewServer()
		want := host.RuntimeStatus{Name: "containerd", Version: "v2.4.2", Ready: true}
		runtimeapi.RegisterRuntimeServiceServer(s, &contractRuntime{status: want})
		go func() { _ = s.Serve(listener) }()
		t.Cleanup(s.Stop)
		status, err := probes{}.ContainerRuntime(t.Context(), "npipe://./pipe/"+name)
		if status != want || err != nil {
			t.Errorf("%+v, %v", status, err)
		}
	})
	t.Run("what is no pipe is refused", func(t *testing.T) {
		if _, err := (probes{}).ContainerRuntime(t.Context(), "tcp://127.0.0.1:1"); err == nil {
			t.Error("accepted")
		}
	})
}
