package nodecondition

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodecondition").
		For(&corev1.Node{}, builder.WithPredicates(queue.Changed(watchedFields))).
		Watches(&corev1.Node{}, handler.Funcs{
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
				_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				before, ok := e.ObjectOld.(*corev1.Node)
				after, ok2 := e.ObjectNew.(*corev1.Node)
				if ok && ok2 {
					r.emitConditionEvent(ctx, before, after)
				}
			},
		}).
		WithOptions(queue.OptionsOn(r.Clock)).
		Complete(r)
}

// watchedFields returns the condition, the bound instance of the Node, and whether the Node has an agent.
func watchedFields(node *corev1.Node) [3]any {
	return [3]any{valueOf(node), node.Annotations[v1alpha1.AnnotationInstance], hasAgent(node)}
}

// valueOf returns the Node's condition as a comparable value.
func valueOf(node *corev1.Node) corev1.NodeCondition {
	if condition := Of(node); condition != nil {
		return *condition
	}
	return corev1.NodeCondition{}
}

// emitConditionEvent emits an event for a condition that became False or changed while False. Each event is separate,
// because each relates to another version of the Node. A compromised agent gains nothing: a kubelet may write events
// itself.
func (r *Reconciler) emitConditionEvent(ctx context.Context, before, after *corev1.Node) {
	was, is := valueOf(before), valueOf(after)
	if is.Status != corev1.ConditionFalse || was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	instance := &v1alpha1.WindowsInstance{}
	key := types.NamespacedName{Namespace: r.Namespace, Name: after.Annotations[v1alpha1.AnnotationInstance]}
	if key.Name == "" {
		return
	}
	if err := r.Client.Get(ctx, key, instance); err != nil {
		if client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Info("no event was sent for the condition of a Node", "node", after.Name, "reason", err.Error())
		}
		return
	}
	if instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return // the instance is being removed, and services that stop are no drift
	}
	if is.Reason == nodespec.ConfigurationRepaired {
		r.countRepair(ctx, after)
		recorder.Emit(r.Events, driftRepaired(instance, after, is.Message))
		return
	}
	recorder.Emit(r.Events, driftNotRepaired(instance, after, is.Message))
}

// countRepair counts a repair of a Node. A Node without an agent, or deleted in the meantime, must have no
// series: the reconcile that deletes the series may have run before.
func (r *Reconciler) countRepair(ctx context.Context, node *corev1.Node) {
	metrics.RepairsReported.Of(node.Name).Inc()
	now := &corev1.Node{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: node.Name}, now)
	if apierrors.IsNotFound(err) || err == nil && !hasAgent(now) {
		metrics.RepairsReported.Forget(node.Name)
	}
}
