package operator

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := newNotices()
		idle, busy := n.reader(), n.reader()
		ended := make(chan error, 1)
		go func() { ended <- n.Start(ctx) }()

		// A reader that does not read holds up neither the sender nor the other reader.
		for range 3 {
			n.incoming <- event.GenericEvent{Object: &corev1.ConfigMap{}}
			<-busy
		}
		synctest.Wait()
		if len(idle) != 1 || len(busy) != 0 {
			t.Errorf("the readers have %d and %d notices in front of them, want 1 and 0", len(idle), len(busy))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
