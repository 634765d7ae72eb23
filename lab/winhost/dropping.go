package winhost

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// firstRepeat is when TCP asks again for a connection that was not answered. Each time it waits for twice as long.
const firstRepeat = time.Second

// Dropping dials as if the firewalls on the way to closed ports dropped what is for them, as those of Windows and of
// clouds do: nobody refuses, and a host that comes up meanwhile is found when TCP asks again. The clock measures until
// when.
func Dropping(clock clock.Clock, dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for wait := firstRepeat; ; wait *= 2 {
			conn, err := dial(ctx, network, address)
			if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EHOSTUNREACH) {
				return conn, err
			}
			timer := clock.NewTimer(wait)
			select {
			case <-timer.C():
			case <-ctx.Done():
				timer.Stop()
				return nil, &net.OpError{Op: "dial", Net: network, Err: timeout(ctx)}
			}
		}
	}
}
