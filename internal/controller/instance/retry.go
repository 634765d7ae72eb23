package instance

import "time"

// Retry delays after a failure: they double from the first to the last, so that a mended host is taken up within a
// minute and a dead one costs one attempt a minute.
const (
	firstRetryDelay = 2 * time.Second
	lastRetryDelay  = time.Minute
)

// retryDelay returns the wait before the given attempt (from 1), spread by a fifth.
func retryDelay(attempt int, jitter float64) time.Duration {
	delay := firstRetryDelay
	for i := 1; i < attempt && delay < lastRetryDelay; i++ {
		delay *= 2
	}
	delay = min(delay, lastRetryDelay)
	return delay - time.Duration(float64(delay)*0.2*jitter)
}
