package nodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// IsOlder reports whether a Node was taken over from an operator before version 12, and its host was not brought up to
// date since.
func IsOlder(node *corev1.Node) bool {
	_, ok := node.Annotations[v1alpha1.AnnotationTakenOverFrom]
	return ok
}

// BindOlder binds a Node of an operator before version 12 to the instance, and overwrites nothing that another writer
// has written meanwhile.
func (n Nodes) BindOlder(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node) error {
	after := node.DeepCopy()
	own(after, instance)
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationTakenOverFrom: node.Annotations[v1alpha1.AnnotationVersion],
	})
	if err := n.Client.Patch(ctx, after, client.MergeFromWithOptions(node,
		client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch Node %s: %w", node.Name, err)
	}
	n.see(after.Name, after)
	return nil
}

// dropOlderMarks takes from a Node that was brought up to date what an operator before version 12 had for itself: the
// version that its agent was to apply, the user name of the host, and its lock. An operator that was stopped while it
// had the lock has left the Node unschedulable.
func dropOlderMarks(node *corev1.Node) {
	for _, name := range []string{v1alpha1.AnnotationDesiredVersion, v1alpha1.AnnotationUsername,
		v1alpha1.AnnotationTakenOverFrom} {
		delete(node.Annotations, name)
	}
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked {
		delete(node.Labels, v1alpha1.LabelUpgrading)
		node.Spec.Unschedulable = false
	}
}
