package timing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/verb"
)

func TestWorkWithoutALimitGivesSignsOfLifeForAsLongAsItTakes(t *testing.T) {
	on := clocktesting.NewFakeClock(time.Unix(0, 0))
	told := make(chan string, 16) // more than are read
	work := Work{What: "removes C:\\a", Tell: func(format string, arguments ...any) {
		told <- fmt.Sprintf(format, arguments...)
	}}
	err := work.Run(t.Context(), on, func(ctx context.Context) error {
		for range 3 {
			for !on.HasWaiters() {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				runtime.Gosched()
			}
			on.Step(24 * time.Hour)
			if line := <-told; !strings.HasPrefix(line, "removes C:\\a, for ") || strings.Contains(line, "at most") {
				t.Errorf("it says %q", line)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// step lets time pass whenever somebody waits for it, until the test ends.
func step(t *testing.T, on *clocktesting.FakeClock, by time.Duration) {
	t.Helper()
	for t.Context().Err() == nil {
		if on.HasWaiters() {
			on.Step(by)
		}
		runtime.Gosched()
	}
}

func TestWorkEndsWithItsGraceWhateverTheActionDoes(t *testing.T) {
	work := Work{Limit: 10 * time.Minute, Grace: 5 * time.Minute, What: "Windows does it", Remedy: "Restart the host"}
	stuck := func(context.Context) error { select {} }
	run := func(t *testing.T, ctx context.Context, action func(context.Context) error) (err error, told []string) {
		t.Helper()
		on := clocktesting.NewFakeClock(time.Unix(0, 0))
		go step(t, on, time.Second)
		work.Tell = func(format string, arguments ...any) { told = append(told, fmt.Sprintf(format, arguments...)) }
		err = work.Run(ctx, on, action)
		return err, told
	}
	t.Run("and says what to do", func(t *testing.T) {
		err, told := run(t, t.Context(), stuck)
		const want = "Windows does it took longer than 10m0s, and has not stopped within 5m0s. Restart the host"
		if failure := (*verb.Failure)(nil); !errors.As(err, &failure) || failure.Message != want {
			t.Errorf("%v", err)
		}
		last := told[len(told)-1]
		if len(told) < 50 || !strings.Contains(last, "and was told to stop after 10m0s") || !strings.Contains(last, "for 14m") {
			t.Errorf("%d signs of life, the last is %q", len(told), last)
		}
	})
	t.Run("also when the verb was told to stop", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err, _ := run(t, ctx, stuck)
		if err == nil || !strings.Contains(err.Error(), "Windows does it was told to stop, and has not stopped within 5m0s. Restart the host") {
			t.Errorf("%v", err)
		}
	})
	t.Run("but one that stops within it is waited for", func(t *testing.T) {
		stopped := errors.New("it has stopped")
		err, _ := run(t, t.Context(), func(ctx context.Context) error { <-ctx.Done(); return stopped })
		if !errors.Is(err, stopped) || strings.Contains(err.Error(), "has not stopped") {
			t.Errorf("%v", err)
		}
	})
	t.Run("and one that succeeds has no error", func(t *testing.T) {
		if err, _ := run(t, t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
