package winhost_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestDropping_ClosedPortDoesNotAnswer(t *testing.T) {
	const port = "10.0.0.1:1"
	t.Run("a dial ends when it is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			start := time.Now()
			_, err := winhost.Dropping(clock.RealClock{}, winhost.NewNetwork().DialContext)(ctx, "tcp", port)
			if elapsed := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || elapsed != 10*time.Second {
				t.Errorf("after %s: %v", elapsed, err)
			}
		})
	})
	t.Run("a port that is opened meanwhile answers when TCP asks again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start, open := time.Now(), 5*time.Second
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			closed := winhost.NewNetwork()
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				if time.Since(start) >= open {
					return near, nil
				}
				return closed.DialContext(ctx, network, address)
			}
			if _, err := winhost.Dropping(clock.RealClock{}, dial)(t.Context(), "tcp", port); err != nil ||
				time.Since(start) != 7*time.Second {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
		})
	})
	t.Run("anything else that goes wrong is reported at once", func(t *testing.T) {
		_, err := winhost.Dropping(clock.RealClock{}, winhost.NewNetwork().DialContext)(t.Context(), "tcp", "no-such-host:1")
		var unknown *net.DNSError
		if !errors.As(err, &unknown) {
			t.Error(err)
		}
	})
}
