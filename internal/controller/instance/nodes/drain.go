package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// IsCordoned reports whether the operator has cordoned the Node for a drain that has not ended.
func IsCordoned(node *corev1.Node) bool {
	_, ours := node.Annotations[v1alpha1.AnnotationCordoned]
	return ours
}

// IsDraining reports whether the operator has cordoned the Node and recorded that the drain is incomplete. In
// this state, no change that needs a drained node was made to the host.
func IsDraining(node *corev1.Node) bool {
	return IsCordoned(node) && node.Annotations[v1alpha1.AnnotationDrained] == v1alpha1.DrainIncomplete
}

// Uncordon uncordons the Node if the operator had cordoned it, and changes nothing else.
func (n Nodes) Uncordon(ctx context.Context, instance *v1alpha1.WindowsInstance) error {
	return queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Get(ctx, instance)
		if err != nil || node == nil {
			return err
		}
		after := node.DeepCopy()
		uncordonNode(after)
		return n.Patch(ctx, node, after)
	})
}

// EndRestart uncordons the Node after a requested restart, and removes the request from the Node. It clears
// status.requestedReboot of the instance; the caller writes the status.
func (n Nodes) EndRestart(ctx context.Context, instance *v1alpha1.WindowsInstance) error {
	err := queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Get(ctx, instance)
		if err != nil || node == nil {
			return err
		}
		after := node.DeepCopy()
		uncordonNode(after)
		delete(after.Annotations, v1alpha1.AnnotationRebootRequired)
		return n.Patch(ctx, node, after)
	})
	if err == nil {
		instance.Status.RequestedReboot = nil
	}
	return err
}

// IsDrainOutdated reports whether another client has uncordoned the Node after its drain was complete.
func IsDrainOutdated(node *corev1.Node) bool {
	_, recorded := node.Annotations[v1alpha1.AnnotationDrained]
	return IsCordoned(node) && recorded && !IsDraining(node) && !node.Spec.Unschedulable
}

// Cordon cordons the Node, and records the start time of the drain and that the drain is incomplete. If
// another client uncordoned the Node during a disruption, Cordon removes the drain record instead: the host
// may already be changed.
func (n Nodes) Cordon(ctx context.Context, node *corev1.Node, began time.Time) error {
	after := node.DeepCopy()
	after.Spec.Unschedulable = true
	if IsCordoned(node) && !IsDraining(node) {
		delete(after.Annotations, v1alpha1.AnnotationDrained)
	} else {
		setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationDrained: v1alpha1.DrainIncomplete})
	}
	setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationCordoned: began.UTC().Format(time.RFC3339)})
	return n.Patch(ctx, node, after)
}

// RecordDrained records a complete drain on the Node, if the operator has cordoned the Node. RecordDrained
// returns a conflict error if the Node has changed since it was read.
func (n Nodes) RecordDrained(ctx context.Context, node *corev1.Node) error {
	if !IsCordoned(node) || nodeidentity.IsDrained(node) {
		return nil
	}
	after := node.DeepCopy()
	after.Annotations[v1alpha1.AnnotationDrained] = node.Annotations[v1alpha1.AnnotationCordoned]
	return n.patchUnchanged(ctx, node, after)
}

// DiscardDrained removes the record of a complete drain from a Node that another client has uncordoned since.
// The record is invalid from then on, even if the Node is cordoned again. DiscardDrained reads the cache
// first.
func (n Nodes) DiscardDrained(ctx context.Context, instance *v1alpha1.WindowsInstance) error {
	node, err := n.getBoundNode(ctx, instance)
	if err != nil || node == nil || !IsDrainOutdated(node) {
		return err
	}
	return queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Get(ctx, instance)
		if err != nil || node == nil || !IsCordoned(node) || IsDraining(node) {
			return err
		}
		after := node.DeepCopy()
		delete(after.Annotations, v1alpha1.AnnotationDrained)
		return n.patchUnchanged(ctx, node, after)
	})
}

// patchUnchanged patches the Node unless another client has changed the Node meanwhile.
func (n Nodes) patchUnchanged(ctx context.Context, before, after *corev1.Node) error {
	if err := n.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch Node %s: %w", before.Name, err)
	}
	n.Written.recordNode(after)
	return nil
}

// uncordonNode uncordons the Node if the operator has cordoned it, and removes the records of the drain.
func uncordonNode(node *corev1.Node) {
	if IsCordoned(node) {
		node.Spec.Unschedulable = false
	}
	delete(node.Annotations, v1alpha1.AnnotationCordoned)
	delete(node.Annotations, v1alpha1.AnnotationDrained)
}
