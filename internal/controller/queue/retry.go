package queue

import (
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Retry calls do until it succeeds, its error is not retriable, or the steps are used up, and returns the last
// error. The wrapped retry.OnError of client-go returns no error for a canceled context or a passed deadline, so
// that an unanswered write would count as a success.
func Retry(steps wait.Backoff, isRetriable func(error) bool, do func() error) error {
	var last error
	_ = retry.OnError(steps, isRetriable, func() error { // last, or nil
		last = do()
		return last
	})
	return last
}
