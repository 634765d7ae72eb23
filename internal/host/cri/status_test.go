package cri

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
)

// runtimeServer is a container runtime with the given conditions.
type runtimeServer struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	conditions []*runtimeapi.RuntimeCondition
	failure    error
}

// Version implements the CRI.
func (s *runtimeServer) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "v2.4.2"}, nil
}

// Status implements the CRI.
func (s *runtimeServer) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: s.conditions}}, s.failure
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

// serveRuntime starts the runtime and returns a connection to it.
func serveRuntime(t *testing.T, runtime runtimeapi.RuntimeServiceServer) net.Conn {
	t.Helper()
	client, server := newConnectionPair(t)
	listener := &oneConnection{make(chan net.Conn, 1), make(chan struct{})}
	listener.connections <- server
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, runtime)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return client
}

// newConnectionPair returns the two ends of a connection. Unlike with net.Pipe, both ends accept writes before the peer
// reads, like a Windows pipe. HTTP/2 requires this behavior at its start.
func newConnectionPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestStatus(t *testing.T) {
	ready := &runtimeapi.RuntimeCondition{Type: runtimeapi.RuntimeReady, Status: true}
	noNetwork := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: false, Reason: "NetworkPluginNotReady"}
	t.Run("a runtime that waits for its network is ready itself", func(t *testing.T) {
		got, err := Status(t.Context(), serveRuntime(t, &runtimeServer{conditions: []*runtimeapi.RuntimeCondition{noNetwork, ready}}))
		if want := (host.RuntimeStatus{Name: "containerd", Version: "v2.4.2", Ready: true}); got != want || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("a runtime that does not say that it is ready is not", func(t *testing.T) {
		for _, conditions := range [][]*runtimeapi.RuntimeCondition{nil, {noNetwork}, {{Type: runtimeapi.RuntimeReady}}} {
			if got, err := Status(t.Context(), serveRuntime(t, &runtimeServer{conditions: conditions})); got.Ready || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
	t.Run("what the runtime says is wrong is in the error", func(t *testing.T) {
		_, err := Status(t.Context(), serveRuntime(t, &runtimeServer{failure: errors.New("no snapshotter")}))
		if err == nil || !strings.Contains(err.Error(), "no snapshotter") {
			t.Error(err)
		}
	})
	t.Run("a connection that ends is an error at once", func(t *testing.T) {
		client, server := net.Pipe()
		_ = server.Close()
		if got, err := Status(t.Context(), client); err == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a runtime that says nothing is given up when the context is done", func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = server.Read(make([]byte, 1)); cancel() }()
		if got, err := Status(ctx, client); err == nil {
			t.Errorf("%+v", got)
		}
	})
}
