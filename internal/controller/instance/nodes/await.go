package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Waiter is a pass that waits for its Node.
type Waiter struct {
	Instance *v1alpha1.WindowsInstance
	// Began is the instance as it was when the pass began: the wait ends when something else is wanted of it.
	Began *v1alpha1.WindowsInstance
	// Lost is closed when there is no connection to the host any more, which ends the wait; nil without a connection.
	Lost <-chan struct{}
}

// AwaitRegistered waits for a moment until the instance's Node is there, and returns it; nil when it is not.
func (n Nodes) AwaitRegistered(ctx context.Context, w Waiter) (*corev1.Node, error) {
	return n.Await(ctx, w, func(*corev1.Node) bool { return true })
}

// Await waits for a moment until the instance's Node is there and as wanted, and returns it as it was read last, wanted
// or not; nil when it is not there. It is woken by changes, and asks the cache until one of them is the wanted one.
func (n Nodes) Await(ctx context.Context, w Waiter, wanted func(*corev1.Node) bool) (*corev1.Node, error) {
	node, err := n.Of(ctx, w.Instance)
	if err != nil || n.Changes == nil || node != nil && wanted(node) {
		return node, err
	}
	defer n.waitedSince(n.Clock.Now())
	limit := n.Clock.NewTimer(patience)
	defer limit.Stop()
	for {
		var changed bool
		if changed, node, err = n.awaitChange(ctx, w, node, wanted, limit.C()); !changed {
			return node, err
		}
	}
}

// awaitChange waits for one change of the Node, and reports whether the wait goes on after it. Else it returns the Node
// as it was read last.
func (n Nodes) awaitChange(ctx context.Context, w Waiter, node *corev1.Node, wanted func(*corev1.Node) bool,
	limit <-chan time.Time) (changed bool, last *corev1.Node, err error) {
	next, leave := n.Changes.next(NameOf(w.Instance))
	defer leave()
	if n.overtaken(ctx, w.Began) {
		return false, node, nil
	}
	if n.maybe(ctx, w.Instance, wanted) {
		if node, err = n.Of(ctx, w.Instance); err != nil || node != nil && wanted(node) {
			return false, node, err
		}
	}
	select {
	case <-next:
		return true, node, nil
	case <-limit:
		node, err = n.Of(ctx, w.Instance)
		return false, node, err
	case <-w.Lost:
	case <-ctx.Done(): // what follows from that is the caller's
	}
	return false, node, nil
}

// maybe reports whether it is worth asking the API server: the cache has the Node as wanted, or does not answer.
func (n Nodes) maybe(ctx context.Context, instance *v1alpha1.WindowsInstance, wanted func(*corev1.Node) bool) bool {
	node := &corev1.Node{}
	err := n.Client.Get(ctx, types.NamespacedName{Name: NameOf(instance)}, node)
	return err == nil && wanted(node) || err != nil && !apierrors.IsNotFound(err)
}

// overtaken reports whether the instance is gone, or something else is wanted of it than when the pass began.
func (n Nodes) overtaken(ctx context.Context, began *v1alpha1.WindowsInstance) bool {
	present := &v1alpha1.WindowsInstance{}
	if err := n.Client.Get(ctx, client.ObjectKeyFromObject(began), present); err != nil {
		return apierrors.IsNotFound(err)
	}
	return present.UID != began.UID || present.Generation > began.Generation
}

// Waited returns how long this pass has waited for its Node: its host is not to blame for that.
func (n Nodes) Waited() time.Duration { return n.pass.waited }

func (n Nodes) waitedSince(begin time.Time) {
	if n.pass != nil {
		n.pass.waited += n.Clock.Since(begin)
	}
}

// pass is what one pass remembers.
type pass struct {
	last   seen
	waited time.Duration
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
	if n.pass != nil {
		last := n.pass.last
		if last.name != "" && last.name == NameOf(instance) && n.Clock.Since(last.at) < recent {
			return last.node, nil
		}
	}
	return n.Of(ctx, instance)
}

// see keeps what was read or written. Nobody may change it.
func (n Nodes) see(name string, node *corev1.Node) {
	if n.pass != nil {
		n.pass.last = seen{name: name, node: node, at: n.Clock.Now()}
	}
}
