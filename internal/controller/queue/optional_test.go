package queue

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// controller-runtime logs a source by its String method, and cannot log a source without one.
func TestOptionalKind_LoggedByNameAndNotAwaited(t *testing.T) {
	pods := OptionalKind(nil, &corev1.Pod{}, &handler.EnqueueRequestForObject{})
	want := fmt.Sprint(source.Kind[client.Object](nil, &corev1.Pod{}, &handler.EnqueueRequestForObject{}))
	if named, ok := pods.(fmt.Stringer); !ok || named.String() != want {
		t.Errorf("it is logged as %v, want %s", pods, want)
	}
	if _, awaited := pods.(interface{ WaitForSync(context.Context) error }); awaited {
		t.Error("a controller waits for it")
	}
}
