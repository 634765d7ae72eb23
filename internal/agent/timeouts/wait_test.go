package timeouts

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

func TestOperation_WithoutTimeoutReportsProgressUntilDone(t *testing.T) {
	on := clocktesting.NewFakeClock(time.Unix(0, 0))
	lines := make(chan string, 16) // larger than the number of reads
	operation := Operation{What: "removing C:\\a", Progress: func(format string, arguments ...any) {
		lines <- fmt.Sprintf(format, arguments...)
	}}
	err := operation.Run(t.Context(), on, func(ctx context.Context) error {
		for range 3 {
			for !on.HasWaiters() {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				runtime.Gosched()
			}
			on.Step(24 * time.Hour)
			if line := <-lines; !strings.HasPrefix(line, "removing C:\\a: ") || strings.Contains(line, "timeout") {
				t.Errorf("it says %q", line)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// collectHeartbeats advances the clock from one progress report to the next until the work has ended. First, it waits
// for the given number of waiters on the clock.
func collectHeartbeats(on *clocktesting.FakeClock, waiters int, heartbeats <-chan string, ended <-chan error) (lines []string, err error) {
	for on.Waiters() < waiters {
		select {
		case err := <-ended:
			return lines, err
		default:
			runtime.Gosched()
		}
	}
	for {
		on.Step(HeartbeatInterval)
		select {
		case line := <-heartbeats:
			lines = append(lines, line)
		case err := <-ended:
			return lines, err
		case <-time.After(eventTimeout):
			return lines, fmt.Errorf("neither a sign of life nor the end came within %s", eventTimeout)
		}
	}
}

// eventTimeout is the timeout of a test for immediate events.
const eventTimeout = 10 * time.Second

func TestOperation_EndsAfterGracePeriod(t *testing.T) {
	run := func(ctx context.Context, waiters int, action func(context.Context) error) ([]string, error) {
		on, heartbeats, ended := clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan string), make(chan error, 1)
		operation := Operation{Timeout: 10 * time.Minute, GracePeriod: 5 * time.Minute, What: "enabling a feature", Remedy: "Restart the host"}
		finished := make(chan struct{})
		operation.Progress = func(format string, arguments ...any) {
			select {
			case heartbeats <- fmt.Sprintf(format, arguments...):
			case <-finished:
			}
		}
		go func() { ended <- operation.Run(ctx, on, action) }()
		defer close(finished)
		return collectHeartbeats(on, waiters, heartbeats, ended)
	}
	stuck := func(context.Context) error { <-t.Context().Done(); return nil }
	t.Run("and says what to do", func(t *testing.T) {
		lines, err := run(t.Context(), 2, stuck)
		const want = "enabling a feature took longer than 10m0s, and has not stopped within 5m0s. Restart the host"
		if failure := (*agentapi.Failure)(nil); !errors.As(err, &failure) || failure.Message != want {
			t.Errorf("%v", err)
		}
		n := 0
		for _, line := range lines {
			if strings.Contains(line, "; canceled after 10m0s") {
				n++
			}
		}
		if n < 10 {
			t.Errorf("%d of %d signs of life came after it was told to stop", n, len(lines))
		}
	})
	t.Run("also when the verb was told to stop", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := run(ctx, 3, stuck) // limit, heartbeat, grace
		if err == nil || !strings.Contains(err.Error(), "enabling a feature was canceled, and has not stopped within 5m0s. Restart the host") {
			t.Errorf("%v", err)
		}
	})
	t.Run("but one that stops within it is waited for", func(t *testing.T) {
		stopped := errors.New("it has stopped")
		_, err := run(t.Context(), 2, func(ctx context.Context) error { <-ctx.Done(); return stopped })
		if !errors.Is(err, stopped) || strings.Contains(err.Error(), "has not stopped") {
			t.Errorf("%v", err)
		}
	})
	t.Run("and one that succeeds has no error", func(t *testing.T) {
		if _, err := run(t.Context(), 2, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
