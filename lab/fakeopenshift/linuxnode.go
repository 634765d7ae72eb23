package fakeopenshift

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// LinuxNode is the node of a simulated Linux machine: an object, and a lease that keeps the node ready.
type LinuxNode struct {
	Name, Address, ProviderID string
	// Role is worker or master.
	Role string
}

// Run creates the node and keeps it ready until ctx is done. Then the lease ends; the deletion of the Node
// object is left to the deletion of the machine.
func (n LinuxNode) Run(ctx context.Context, client kubernetes.Interface, clock clock.WithTicker) error {
	roles := []string{n.Role}
	if n.Role == "master" {
		roles = []string{"control-plane", "master"}
	}
	node := linuxNode(n.Name, n.Address, clock.Now(), roles)
	node.Spec.ProviderID = n.ProviderID
	l := &linuxNodes{client: client, clock: clock, nodes: []*corev1.Node{node}}
	if err := l.createNodes(ctx); err != nil {
		return err
	}
	l.keepLeases(ctx, slog.New(slog.DiscardHandler))
	err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(context.WithoutCancel(ctx), n.Name,
		metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the lease of the Linux node %s: %w", n.Name, err)
	}
	return nil
}
