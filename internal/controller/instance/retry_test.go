package instance

import (
	"testing"
	"time"
)

func TestRetryDelay_GrowsToOneMinute(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 4: 16 * time.Second,
		6: time.Minute, 1000: time.Minute} {
		if got := retryDelay(attempt, 0); got != want {
			t.Errorf("attempt %d waits %s, want %s", attempt, got, want)
		}
	}
	if got := retryDelay(6, 0.999); got < 48*time.Second || got > time.Minute {
		t.Errorf("a spread delay is %s, want within a fifth below a minute", got)
	}
}
