package queue

import (
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Retry calls do until it succeeds, its error is not retriable, or the steps are used up, and returns the last error.
// client-go's retry.OnError, which it calls, returns no error when a context was canceled or its deadline has passed: a
// write without an answer would count as a success.
func Retry(steps wait.Backoff, isRetriable func(error) bool, do func() error) error {
	var last error
	_ = retry.OnError(steps, isRetriable, func() error { // last, or nothing
		last = do()
		return last
	})
	return last
}
