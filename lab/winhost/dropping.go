package winhost

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// firstRetransmitDelay is the time until the first TCP retransmission of a connection request. Each further wait is
// twice as long.
const firstRetransmitDelay = time.Second

// Dropping dials as if firewalls dropped packets to closed ports, as the firewalls of Windows and of clouds do: no
// connection is refused, and a host that starts meanwhile is found by a retransmission. The clock measures the waits.
func Dropping(clock clock.Clock, dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for wait := firstRetransmitDelay; ; wait *= 2 {
			conn, err := dial(ctx, network, address)
			if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EHOSTUNREACH) {
				return conn, err
			}
			timer := clock.NewTimer(wait)
			select {
			case <-timer.C():
			case <-ctx.Done():
				timer.Stop()
				return nil, &net.OpError{Op: "dial", Net: network, Err: timeoutError(ctx)}
			}
		}
	}
}
