package orphan

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watch "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("orphan").
		For(&corev1.Node{}, builder.WithPredicates(queue.Changed(identifyingFields))).
		Watches(&v1alpha1.WindowsInstance{}, handler.EnqueueRequestsFromMapFunc(instanceToNode), builder.WithPredicates(nodeRefChanged())).
		WithOptions(queue.Options()).
		Complete(r)
}

// identifyingFields returns the label and annotation values that identify a Node of the operator.
func identifyingFields(node client.Object) [6]string {
	labels, annotations := node.GetLabels(), node.GetAnnotations()
	return [6]string{
		labels[corev1.LabelOSStable], labels[v1alpha1.LabelOSID], labels[v1alpha1.LabelBYOH],
		annotations[v1alpha1.AnnotationInstance], annotations[v1alpha1.AnnotationVersion],
		annotations[v1alpha1.AnnotationPubKeyHash],
	}
}

// nodeRefChanged passes updates that set or unset the Node of an instance.
func nodeRefChanged() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(watch.CreateEvent) bool { return false }, // no Node yet, or reconciled at the start
		UpdateFunc: func(e watch.UpdateEvent) bool { return nodeName(e.ObjectOld) != nodeName(e.ObjectNew) },
	}
}

// nodeName returns the name of the Node that an instance has or claims.
func nodeName(object client.Object) string {
	if instance, ok := object.(*v1alpha1.WindowsInstance); ok && instance.Status.NodeRef != nil {
		return instance.Status.NodeRef.Name
	}
	return ""
}

func instanceToNode(_ context.Context, instance client.Object) []reconcile.Request {
	if nodeName(instance) == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: nodeName(instance)}}}
}
