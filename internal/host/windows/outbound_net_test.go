package windows

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestLookupHost(t *testing.T) {
	t.Run("localhost has its IPv4 address first", func(t *testing.T) {
		addresses, err := lookupHost(t.Context(), net.DefaultResolver, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		if len(addresses) == 0 || addresses[0] != "127.0.0.1" {
			t.Errorf("%q", addresses)
		}
	})
	t.Run("what answers nothing is given up with the context", func(t *testing.T) {
		silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		addresses, err := lookupHost(ctx, silent, "api-int.example.com")
		if err == nil || errors.Is(err, host.ErrNotExist) || len(addresses) > 0 {
			t.Errorf("%q, %v", addresses, err)
		}
	})
}

func TestConnectTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	t.Run("a port that listens takes a connection, which ends", func(t *testing.T) {
		if err := connectTCP(t.Context(), new(net.Dialer), address); err != nil {
			t.Fatal(err)
		}
		connection, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := connection.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("a port that nobody listens on does not", func(t *testing.T) {
		if err := connectTCP(t.Context(), new(net.Dialer), address); err == nil {
			t.Error("connected")
		}
	})
	t.Run("a name is not looked up", func(t *testing.T) {
		var dialer net.Dialer
		dialer.ControlContext = func(context.Context, string, string, syscall.RawConn) error { t.Error("dialed"); return nil }
		if err := connectTCP(t.Context(), &dialer, "localhost:6443"); err == nil {
			t.Error("connected")
		}
	})
}
