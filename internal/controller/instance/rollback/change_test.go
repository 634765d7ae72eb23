package rollback

import (
	"testing"
	"time"
)

func TestRetryDelay_DoublesUpToOneDay(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{1: 30 * time.Minute, 2: time.Hour, 3: 2 * time.Hour,
		7: 24 * time.Hour, 1000: 24 * time.Hour} {
		if got := RetryDelay(30*time.Minute, attempts); got != want {
			t.Errorf("after %d attempts: %s, want %s", attempts, got, want)
		}
	}
}
