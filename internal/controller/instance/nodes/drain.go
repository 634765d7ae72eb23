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

// Cordoned reports whether the operator has cordoned the Node for a drain that has not ended.
func Cordoned(node *corev1.Node) bool {
	_, ours := node.Annotations[v1alpha1.AnnotationCordoned]
	return ours
}

// Draining reports whether the operator has cordoned the Node and recorded that the drain is incomplete. In
// this state, no change that needs a drained node was made to the host.
func Draining(node *corev1.Node) bool {
	return Cordoned(node) && node.Annotations[v1alpha1.AnnotationDrained] == v1alpha1.DrainIncomplete
}

// TakeIntoService uncordons the Node if the operator had cordoned it, and changes nothing else.
func (n Nodes) TakeIntoService(ctx context.Context, instance *v1alpha1.WindowsInstance) error {
	return queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Of(ctx, instance)
		if err != nil || node == nil {
			return err
		}
		after := node.DeepCopy()
		uncordon(after)
		return n.Patch(ctx, node, after)
	})
}

// EndRestart uncordons the Node after a requested restart, and removes the request from the Node. It clears
// status.requestedReboot of the instance; the caller writes the status.
func (n Nodes) EndRestart(ctx context.Context, instance *v1alpha1.WindowsInstance) error {
	err := queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Of(ctx, instance)
		if err != nil || node == nil {
			return err
		}
		after := node.DeepCopy()
		uncordon(after)
		delete(after.Annotations, v1alpha1.AnnotationRebootRequired)
		return n.Patch(ctx, node, after)
	})
	if err == nil {
		instance.Status.RequestedReboot = nil
	}
	return err
}

// DrainOutdated reports whether another client has uncordoned the Node after its drain was complete.
func DrainOutdated(node *corev1.Node) bool {
	_, recorded := node.Annotations[v1alpha1.AnnotationDrained]
	return Cordoned(node) && recorded && !Draining(node) && !node.Spec.Unschedulable
}

// Cordon cordons the Node, and records the start time of the drain and that the drain is incomplete. If
// another client uncordoned the Node during a disruption, Cordon removes the drain record instead: the host
// may already be changed.
func (n Nodes) Cordon(ctx context.Context, node *corev1.Node, began time.Time) error {
	after := node.DeepCopy()
	after.Spec.Unschedulable = true
	if Cordoned(node) && !Draining(node) {
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
	if !Cordoned(node) || nodeidentity.Drained(node) {
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
	node, err := n.cached(ctx, instance)
	if err != nil || node == nil || !DrainOutdated(node) {
		return err
	}
	return queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		node, err := n.Of(ctx, instance)
		if err != nil || node == nil || !Cordoned(node) || Draining(node) {
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
	n.Written.note(after)
	return nil
}

// uncordon uncordons the Node if the operator has cordoned it, and removes the records of the drain.
func uncordon(node *corev1.Node) {
	if Cordoned(node) {
		node.Spec.Unschedulable = false
	}
	delete(node.Annotations, v1alpha1.AnnotationCordoned)
	delete(node.Annotations, v1alpha1.AnnotationDrained)
}
