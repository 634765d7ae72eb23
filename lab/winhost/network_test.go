package winhost_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestNetwork(t *testing.T) {
	network := winhost.NewNetwork()
	listener, err := network.Listen("10.0.0.1", 22)
	requireNoError(t, err)
	network.SetName("web.example.com", "10.0.0.1")
	network.SetPointer("10.0.0.1", "web.example.com.")

	t.Run("a listener is reached by its address and by its name", func(t *testing.T) {
		for _, address := range []string{"10.0.0.1:22", "web.example.com:22", "WEB.example.com.:22"} {
			near, err := network.DialContext(t.Context(), "tcp", address)
			requireNoError(t, err)
			far, err := listener.Accept()
			requireNoError(t, err)
			if near.RemoteAddr().String() != "10.0.0.1:22" || far.LocalAddr().String() != "10.0.0.1:22" {
				t.Errorf("%s: %v, %v", address, near.RemoteAddr(), far.LocalAddr())
			}
			_, _ = near.Close(), far.Close()
		}
	})
	t.Run("a port where nobody listens refuses", func(t *testing.T) {
		if _, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:23"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an address that nobody has is unreachable", func(t *testing.T) {
		if _, err := network.DialContext(t.Context(), "tcp", "10.0.0.9:22"); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a port is taken once", func(t *testing.T) {
		if _, err := network.Listen("10.0.0.1", 22); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an unplugged host does not answer until it is plugged in", func(t *testing.T) {
		plug := network.Unplug("10.0.0.1")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var timeout net.Error
		if _, err := network.DialContext(ctx, "tcp", "10.0.0.1:22"); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v", err)
		}
		dialed := make(chan error)
		go func() {
			conn, err := network.DialContext(context.WithoutCancel(t.Context()), "tcp", "10.0.0.1:22")
			if err == nil {
				_ = conn.Close()
			}
			dialed <- err
		}()
		plug()
		if err := <-dialed; err != nil {
			t.Errorf("plugged in: %v", err)
		}
	})
	t.Run("names", func(t *testing.T) {
		if names, err := network.LookupAddr(t.Context(), "10.0.0.1"); !slices.Equal(names, []string{"web.example.com."}) {
			t.Errorf("got %v, %v", names, err)
		}
		var missing *net.DNSError
		if _, err := network.LookupAddr(t.Context(), "10.0.0.2"); !errors.As(err, &missing) || !missing.IsNotFound {
			t.Errorf("a host without PTR record: %v", err)
		}
		if _, err := network.DialContext(t.Context(), "tcp", "none.example.com:22"); !errors.As(err, &missing) || !missing.IsNotFound {
			t.Errorf("a name that is not there: %v", err)
		}
	})
	t.Run("a closed listener refuses, and its port is free again", func(t *testing.T) {
		requireNoError(t, listener.Close())
		if _, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:22"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
		again, err := network.Listen("10.0.0.1", 22)
		requireNoError(t, err)
		requireNoError(t, again.Close())
	})
}
