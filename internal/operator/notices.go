package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// notices hands each notice on to all its readers. A notice says only that something is to be looked at, so that a
// reader which has one in front of it needs no second. It is a Runnable of the manager.
type notices struct {
	incoming chan event.GenericEvent
	readers  []chan event.GenericEvent
}

func newNotices() *notices { return &notices{incoming: make(chan event.GenericEvent, 1)} }

// reader makes a reader. All are made before Start; one may be read from at any time after.
func (n *notices) reader() <-chan event.GenericEvent {
	reader := make(chan event.GenericEvent, 1)
	n.readers = append(n.readers, reader)
	return reader
}

// Start implements manager.Runnable.
func (n *notices) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case notice := <-n.incoming:
			for _, reader := range n.readers {
				select {
				case reader <- notice:
				default:
				}
			}
		}
	}
}
