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

// Bind labels the Node and binds it to the instance. Taints from its source are written with the first binding, so once
// for each registration. It notes the Node's UID in the instance's status.nodeRef, for the caller to write.
func (n Nodes) Bind(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node) error {
	after := node.DeepCopy()
	own(after, instance)
	if node.Annotations[v1alpha1.AnnotationInstance] == "" {
		addTaints(after, instance.Spec.Node)
	}
	instance.Status.NodeRef.UID = string(node.UID)
	return n.Patch(ctx, node, after)
}

// addTaints puts the taints on the Node that its source wants there. Of one key and effect there is only one taint;
// that of the Node stays.
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

// Release hands a proven node to the scheduler: it writes the annotations with the version and the key's hash and the
// labels from its source, and removes what kept pods away while the node was not proven. It clears the instance's
// status.requestedReboot, for the caller to write.
func (n Nodes) Release(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node,
	keyHash string) error {
	after := node.DeepCopy()
	keepLabels(after, instance.Spec.Node)
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
	uncordon(after)
	if instance.Status.RequestedReboot != nil {
		delete(after.Annotations, v1alpha1.AnnotationRebootRequired)
	}
	dropOlderMarks(after)
	if err := n.Patch(ctx, node, after); err != nil {
		return err
	}
	// Not before: with the annotation still there, a restart that nobody remembers is one that is wanted.
	instance.Status.RequestedReboot = nil
	return nil
}

// Patch writes the differences, if there are any.
func (n Nodes) Patch(ctx context.Context, before, after *corev1.Node) error {
	patch := client.MergeFrom(before)
	if !reflect.DeepEqual(before.Spec, after.Spec) {
		// Taints are replaced as a whole: others write them too.
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
	n.Written.note(after)
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
