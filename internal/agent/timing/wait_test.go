package timing

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
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
