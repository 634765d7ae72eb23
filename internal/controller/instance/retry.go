package instance

import "time"

// Retry delays after a failure double from the first to the last. A repaired host is reconciled within a minute,
// and an unreachable host costs one attempt per minute.
const (
	minRetryDelay = 2 * time.Second
	maxRetryDelay = time.Minute
)

// retryDelay returns the delay before the given attempt (from 1), shortened by a jitter of up to 20 %.
func retryDelay(attempt int, jitter float64) time.Duration {
	delay := minRetryDelay
	for i := 1; i < attempt && delay < maxRetryDelay; i++ {
		delay *= 2
	}
	delay = min(delay, maxRetryDelay)
	return delay - time.Duration(float64(delay)*0.2*jitter)
}
