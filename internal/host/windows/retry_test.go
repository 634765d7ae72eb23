package windows

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRetry(t *testing.T) {
	busy := fmt.Errorf("move: %w", syscall.Errno(codeSharingViolation))
	// run calls retryTransient with the given outcomes in order, in simulated time, and returns the number of tries.
	run := func(t *testing.T, outcomes ...error) (tries int, err error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			err = retryTransient(t.Context(), clock.RealClock{}, func() error {
				tries++
				return outcomes[min(tries, len(outcomes))-1]
			})
		})
		return tries, err
	}
	t.Run("a success is not repeated", func(t *testing.T) {
		if tries, err := run(t, nil); tries != 1 || err != nil {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("what passes is waited for", func(t *testing.T) {
		if tries, err := run(t, busy, busy, nil); tries != 3 || err != nil {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("what stays is an error in the end", func(t *testing.T) {
		if tries, err := run(t, busy); tries != 1+len(retryDelays()) || !errors.Is(err, busy) {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("what does not pass is an error at once", func(t *testing.T) {
		full := syscall.Errno(codeDiskFull)
		if tries, err := run(t, full); tries != 1 || !errors.Is(err, full) {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("a context that is done ends the wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := retryTransient(ctx, clocktesting.NewFakeClock(time.Time{}), func() error { cancel(); return busy })
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
