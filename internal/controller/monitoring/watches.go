package monitoring

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changes := queue.EnqueueAfter(onlyAddresses, func() time.Duration { return queue.MinDelay })
	return ctrl.NewControllerManagedBy(mgr).
		Named("monitoring").
		Watches(&corev1.Node{}, changes, builder.WithPredicates(queue.Changed(nodeFields))).
		Watches(&v1alpha1.WindowsInstance{}, changes, builder.WithPredicates(queue.Changed(instanceFields))).
		WatchesRawSource(queue.AtStart()).
		WithOptions(queue.OptionsOn(r.Clock)).
		Complete(r)
}

func nodeFields(node *corev1.Node) any {
	return []any{isInService(node), isDrained(node), internalIPv4(node), node.Annotations[v1alpha1.AnnotationInstance]}
}

func instanceFields(instance *v1alpha1.WindowsInstance) any {
	return []any{departureOf(instance), nodeidentity.ConfirmedName(instance)}
}
