package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// IsLegacy reports whether the operator adopted the Node from a legacy operator (before version 12) and has
// not upgraded the host since.
func IsLegacy(node *corev1.Node) bool {
	_, ok := node.Annotations[v1alpha1.AnnotationTakenOverFrom]
	return ok
}

// BindLegacy binds a Node of a legacy operator to the instance, and does not overwrite changes that another
// writer has made meanwhile.
func (n Nodes) BindLegacy(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node) error {
	after := node.DeepCopy()
	setOwnedFields(after, instance)
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationTakenOverFrom: node.Annotations[v1alpha1.AnnotationVersion],
	})
	adoptCordon(after, n.Clock.Now())
	return n.patchUnchanged(ctx, node, after)
}

// adoptCordon records the cordon of a legacy operator as a cordon of this operator. A legacy operator that
// was stopped during the upgrade of a node leaves its lock label and a cordoned Node. Whether the node was
// drained is unknown. A cordon without the lock, and any later cordon, belongs to a user.
func adoptCordon(node *corev1.Node, now time.Time) {
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked && node.Spec.Unschedulable {
		setAll(&node.Annotations, map[string]string{v1alpha1.AnnotationCordoned: now.UTC().Format(time.RFC3339)})
	}
}

// dropLegacyMarks removes the internal marks of a legacy operator from an up-to-date Node: the version that
// its agent had to apply, the user name of the host, and the lock. The lock does not prove that the legacy
// operator cordoned the Node.
func dropLegacyMarks(node *corev1.Node) {
	for _, name := range []string{v1alpha1.AnnotationDesiredVersion, v1alpha1.AnnotationUsername,
		v1alpha1.AnnotationTakenOverFrom} {
		delete(node.Annotations, name)
	}
	delete(node.Labels, v1alpha1.LabelUpgrading)
}
