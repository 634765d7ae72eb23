package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	// patience is how long a pass waits for a Node before it ends, and the status tells what is missing. To end costs a
	// write of the status and a pass that reads everything again; but a kubelet registers, has its pod subnet and reports
	// within seconds.
	patience = 10 * time.Second
	// recent is how long a pass goes by what it has read of the Node.
	recent = time.Second
)

// AwaitRegistered waits for a moment until the instance's Node is there, and returns it; nil when it is not.
func (n Nodes) AwaitRegistered(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	return n.Await(ctx, instance, func(*corev1.Node) bool { return true })
}

// Await waits for a moment until the instance's Node is there and as wanted, and returns it as it is then, wanted or
// not; nil when it is not there. It is woken by changes, and asks the cache until one of them is the wanted one.
func (n Nodes) Await(ctx context.Context, instance *v1alpha1.WindowsInstance,
	wanted func(*corev1.Node) bool) (*corev1.Node, error) {
	node, err := n.Of(ctx, instance)
	if err != nil || n.Changes == nil || node != nil && wanted(node) {
		return node, err
	}
	limit := n.Clock.NewTimer(patience)
	defer limit.Stop()
	for {
		next := n.Changes.next(NameOf(instance))
		cached := &corev1.Node{}
		err := n.Client.Get(ctx, types.NamespacedName{Name: NameOf(instance)}, cached)
		if err == nil && wanted(cached) || err != nil && !apierrors.IsNotFound(err) {
			return n.Of(ctx, instance)
		}
		select {
		case <-next:
		case <-limit.C():
			return n.Of(ctx, instance)
		case <-ctx.Done():
			return node, nil // what follows from that is the caller's
		}
	}
}

// seen is what a pass has read last of its Node.
type seen struct {
	name string
	node *corev1.Node // nil when there was none
	at   time.Time
}

// Recent is Of for a pass that has read or written the Node within the last second, and asked the host nothing that
// changes the Node since.
func (n Nodes) Recent(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	if last := n.last; last != nil && last.name == NameOf(instance) && last.name != "" && n.Clock.Since(last.at) < recent {
		return last.node, nil
	}
	return n.Of(ctx, instance)
}

// see keeps what was read or written. Nobody may change it.
func (n Nodes) see(name string, node *corev1.Node) {
	if n.last != nil {
		*n.last = seen{name: name, node: node, at: n.Clock.Now()}
	}
}
