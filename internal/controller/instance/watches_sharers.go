package instance

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// sharedHostChanged accepts changes that other instances of the same host wait for: an instance is being removed or is
// deleted, or has got a Node.
func sharedHostChanged() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // a new instance checks its own host
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsInstance)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsInstance)
			return ok && ok2 && (before.Spec.DesiredState != after.Spec.DesiredState || nodeUID(before) != nodeUID(after))
		},
	}
}

// nodeUID returns the UID of the instance's Node; empty for none.
func nodeUID(instance *v1alpha1.WindowsInstance) string {
	if instance.Status.NodeRef == nil {
		return ""
	}
	return instance.Status.NodeRef.UID
}

// instancesOnSameHost returns the other instances of the same host that may wait for this instance: instances that are
// being removed and, when this instance is removed, instances without a node.
func (r *Reconciler) instancesOnSameHost(ctx context.Context, object client.Object) []reconcile.Request {
	instance, ok := object.(*v1alpha1.WindowsInstance)
	if !ok || instance.Status.HostKey == nil {
		return nil
	}
	others, err := r.cachedInstances().WithHostKey(ctx, instance.Status.HostKey.Key)
	if err != nil {
		return nil
	}
	leaves := instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved
	return requestsFor(others, func(other *v1alpha1.WindowsInstance) bool {
		waits := other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || leaves && nodeidentity.ConfirmedName(other) == ""
		return waits && other.Name != instance.Name && nodeidentity.IsSameHost(other, instance)
	})
}
