package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestRetry_ReturnsLastError(t *testing.T) {
	overtaken := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "web", errors.New("written meanwhile"))
	failure := errors.New("broken")
	unanswered := fmt.Errorf("update the node: %w", context.Canceled)
	late := fmt.Errorf("update the node: %w", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		answers  []error
		attempts int
		want     error
	}{
		"a success is no error":                                     {[]error{nil}, 1, nil},
		"a write that was overtaken is done again":                  {[]error{overtaken, nil}, 2, nil},
		"a write that is overtaken each time fails":                 {[]error{overtaken, overtaken, overtaken}, 3, overtaken},
		"another error ends it":                                     {[]error{overtaken, failure}, 2, failure},
		"a write that was canceled has not succeeded":               {[]error{unanswered}, 1, context.Canceled},
		"a write whose time was over has not succeeded":             {[]error{late}, 1, context.DeadlineExceeded},
		"one that was overtaken, and then canceled, has not either": {[]error{overtaken, unanswered}, 2, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			err := Retry(wait.Backoff{Steps: 3}, apierrors.IsConflict, func() error {
				attempts++
				return c.answers[attempts-1]
			})
			if !errors.Is(err, c.want) || attempts != c.attempts {
				t.Errorf("after %d attempts: %v", attempts, err)
			}
		})
	}
}
