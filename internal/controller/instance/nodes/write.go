package nodes

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Bind labels the Node and binds it to the instance. Taints from the source are written only with the first
// binding, once for each registration. Bind sets the Node's UID in status.nodeRef of the instance; the caller
// writes the status.
func (n Nodes) Bind(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node) error {
	after := node.DeepCopy()
	setOwnedFields(after, instance)
	if node.Annotations[v1alpha1.AnnotationInstance] == "" {
		addTaints(after, instance.Spec.Node)
	}
	instance.Status.NodeRef.UID = string(node.UID)
	return n.Patch(ctx, node, after)
}

// addTaints adds the taints from the source to the Node. A Node has only one taint for each key and effect,
// and an existing taint is not replaced.
func addTaints(node *corev1.Node, metadata *v1alpha1.NodeMetadata) {
	if metadata == nil {
		return
	}
	for i := range metadata.Taints {
		if taintLike(node, &metadata.Taints[i]) == nil {
			node.Spec.Taints = append(node.Spec.Taints, metadata.Taints[i])
		}
	}
}

// Activate activates a verified node. It writes the labels from the source and the annotations with the version and
// the key hash. The start-up taints and the cordon of the operator are removed. Activate clears
// status.requestedReboot of the instance; the caller writes the status.
func (n Nodes) Activate(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node,
	keyHash string) error {
	after := node.DeepCopy()
	setSourceLabels(after, instance.Spec.Node)
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationVersion:    n.Version,
		v1alpha1.AnnotationPubKeyHash: keyHash,
	})
	var taints []corev1.Taint
	for _, taint := range after.Spec.Taints {
		if !nodeidentity.IsStartupTaint(taint) {
			taints = append(taints, taint)
		}
	}
	after.Spec.Taints = taints
	uncordonNode(after)
	if instance.Status.RequestedReboot != nil {
		delete(after.Annotations, v1alpha1.AnnotationRebootRequired)
	}
	dropLegacyMarks(after)
	if err := n.Patch(ctx, node, after); err != nil {
		return err
	}
	// The status must not be cleared earlier. While the annotation exists, a restart that is not recorded in
	// the status counts as requested again.
	instance.Status.RequestedReboot = nil
	return nil
}

// Patch writes the differences, if there are any.
func (n Nodes) Patch(ctx context.Context, before, after *corev1.Node) error {
	patch := client.MergeFrom(before)
	if !reflect.DeepEqual(before.Spec, after.Spec) {
		// A merge patch replaces the complete list of taints, and other clients write taints too.
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	if data, err := patch.Data(after); err == nil && string(data) == "{}" {
		return nil
	}
	if err := n.Client.Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("patch Node %s: %w", before.Name, err)
	}
	n.Written.recordNode(after)
	return nil
}

func setAll(into *map[string]string, values map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	for name, value := range values {
		(*into)[name] = value
	}
}
