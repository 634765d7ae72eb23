package windows

import (
	"context"
	"errors"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// retryDelays returns the delays before the retries of a file operation after a transient failure: 630 ms in total.
func retryDelays() []time.Duration {
	return []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
		160 * time.Millisecond, 320 * time.Millisecond}
}

// retryTransient runs a file operation and retries it after transient failures. The result is the last error, or the
// cause of ctx.
func retryTransient(ctx context.Context, clock clock.Clock, do func() error) error {
	err := do()
	for _, delay := range retryDelays() {
		var code syscall.Errno
		if err == nil || !errors.As(err, &code) || !isTransient(uint32(code)) {
			return err
		}
		timer := clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		err = do()
	}
	return err
}
