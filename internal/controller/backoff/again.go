package backoff

import (
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Again does something until it succeeds, its error is not worth another attempt, or the steps are used up, and returns
// the last error. client-go's retry.OnError, which it calls, returns none when a context was canceled or its deadline
// has passed: a write that was never answered would be taken for one that has succeeded.
func Again(steps wait.Backoff, worth func(error) bool, do func() error) error {
	var last error
	_ = retry.OnError(steps, worth, func() error { // last, or nothing
		last = do()
		return last
	})
	return last
}
