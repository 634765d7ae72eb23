package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	adoptCordon(after, n.Clock.Now())
	return n.patchUnchanged(ctx, node, after)
}

// adoptCordon records the cordon of an operator before version 12 as this operator's: one that was stopped during the
// upgrade of a node has left its lock, and the Node unschedulable. Whether the node was drained is not known. A cordon
// without the lock, and any later one, is a user's.
func adoptCordon(node *corev1.Node, now time.Time) {
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked && node.Spec.Unschedulable {
		setAll(&node.Annotations, map[string]string{v1alpha1.AnnotationCordoned: now.UTC().Format(time.RFC3339)})
	}
}

// dropOlderMarks removes from an up-to-date Node what an operator before version 12 had for itself: the version that its
// agent was to apply, the user name of the host, and its lock. The lock is no proof of who has cordoned the Node.
func dropOlderMarks(node *corev1.Node) {
	for _, name := range []string{v1alpha1.AnnotationDesiredVersion, v1alpha1.AnnotationUsername,
		v1alpha1.AnnotationTakenOverFrom} {
		delete(node.Annotations, name)
	}
	delete(node.Labels, v1alpha1.LabelUpgrading)
}
