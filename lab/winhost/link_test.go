package winhost_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/winhost"
)

// newLinkPair returns a connection with its near end, and the other end without delays.
func newLinkPair(t *testing.T, link *winhost.Link) (near, far net.Conn) {
	t.Helper()
	network := winhost.NewNetwork()
	listener, err := network.Listen("10.0.0.1", 1)
	requireNoError(t, err)
	plain, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:1")
	requireNoError(t, err)
	far, err = listener.Accept()
	requireNoError(t, err)
	near = link.Conn(plain)
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
		_ = listener.Close()
	})
	return near, far
}

func TestLink(t *testing.T) {
	const roundTrip = 100 * time.Millisecond
	t.Run("what is sent ahead costs the delay once", func(t *testing.T) {
		near, far := newLinkPair(t, winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: roundTrip}))
		go func() { _, _ = io.Copy(far, far) }() // an echo
		start := time.Now()
		sent := randomBytes(1 << 20)
		go func() {
			for chunk := range 256 {
				_, _ = near.Write(sent[chunk<<12 : (chunk+1)<<12])
			}
		}()
		back := make([]byte, len(sent))
		_, err := io.ReadFull(near, back)
		requireNoError(t, err)
		elapsed := time.Since(start)
		if !bytes.Equal(back, sent) {
			t.Error("the bytes are not the same")
		}
		if elapsed < roundTrip || elapsed > 100*roundTrip { // one after the other they take 256
			t.Errorf("256 writes took %v", elapsed)
		}
	})
	t.Run("bytes wait in line on a narrow link", func(t *testing.T) {
		fakeClock := clocktesting.NewFakeClock(time.Now())
		near, far := newLinkPair(t, winhost.NewLink(fakeClock, winhost.LinkProperties{RoundTrip: 2 * time.Second, BytesPerSecond: 1000}))
		_, err := near.Write(make([]byte, 3000))
		requireNoError(t, err)
		_, err = near.Write([]byte("x"))
		requireNoError(t, err)
		arrived := make(chan struct{})
		go func() {
			_, _ = io.ReadFull(far, make([]byte, 3001))
			close(arrived)
		}()
		for passed := time.Duration(0); passed < 4*time.Second; passed += time.Second { // 3 s through the link, 1 s to the end
			select {
			case <-arrived:
				t.Fatalf("arrived after %v", passed)
			case <-time.After(5 * time.Millisecond):
			}
			fakeClock.Step(time.Second)
		}
		for waiting := true; waiting; { // one millisecond for the last byte
			fakeClock.Step(time.Millisecond)
			select {
			case <-arrived:
				waiting = false
			case <-time.After(time.Millisecond):
			}
		}
	})
	t.Run("deadlines", func(t *testing.T) {
		near, far := newLinkPair(t, winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: time.Hour}))
		requireNoError(t, near.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err := far.Write([]byte("late"))
		requireNoError(t, err)
		if _, err := near.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		requireNoError(t, near.SetDeadline(time.Time{}))
	})
	t.Run("the end comes behind the last byte", func(t *testing.T) {
		near, far := newLinkPair(t, winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: 20 * time.Millisecond}))
		_, err := far.Write([]byte("bye"))
		requireNoError(t, err)
		requireNoError(t, far.Close())
		if got, err := io.ReadAll(near); string(got) != "bye" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
	t.Run("what was written before Close arrives", func(t *testing.T) {
		near, far := newLinkPair(t, winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: 20 * time.Millisecond}))
		_, err := near.Write([]byte("bye"))
		requireNoError(t, err)
		requireNoError(t, near.Close())
		if got, err := io.ReadAll(far); string(got) != "bye" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read after Close: %v", err)
		}
	})
	t.Run("a host behind a link answers each step of the login a round trip later", func(t *testing.T) {
		l := newLab(t, func(o *winhost.Options) {
			o.Link = winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: 20 * time.Millisecond})
		})
		start := time.Now()
		if out, _, _ := l.run("echo far"); out != "far\r\n" {
			t.Errorf("got %q", out)
		}
		if elapsed := time.Since(start); elapsed < 100*time.Millisecond { // handshake, key exchange, login, session, command
			t.Errorf("it took only %v", elapsed)
		}
	})
	t.Run("a dial takes a round trip", func(t *testing.T) {
		link := winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		atOnce := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			return near, far.Close()
		}
		if _, err := link.Dialer(atOnce)(ctx, "tcp", "10.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
