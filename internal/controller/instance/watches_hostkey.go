package instance

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// hostKeyChanged accepts changes that make a host key shared by several hosts, or end that.
func hostKeyChanged() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // a new instance checks its own host key
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsInstance)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsInstance)
			return ok && ok2 && hostIdentity(before) != hostIdentity(after)
		},
	}
}

// hostIdentity returns the identity of a host: the host key and the machine ID.
func hostIdentity(instance *v1alpha1.WindowsInstance) [2]string {
	var is [2]string
	if key := instance.Status.HostKey; key != nil {
		is[0] = key.Key
	}
	if host := instance.Status.Host; host != nil {
		is[1] = host.MachineID
	}
	return is
}

// instancesWithHostKey returns the other instances with the host key of this one.
func (r *Reconciler) instancesWithHostKey(ctx context.Context, object client.Object) []reconcile.Request {
	instance, ok := object.(*v1alpha1.WindowsInstance)
	if !ok || instance.Status.HostKey == nil {
		return nil
	}
	others, err := r.cachedInstances().WithHostKey(ctx, instance.Status.HostKey.Key)
	if err != nil {
		return nil
	}
	return requestsFor(others, func(other *v1alpha1.WindowsInstance) bool { return other.Name != instance.Name })
}
