package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/internal/controller/backoff"
)

// Resource is what an API server must have before the controller is set up.
var Resource = admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")

// SetupWithManager registers the controller. The API server must have Resource by then.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{r.request()}
	})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("admission").
		// There may be nothing yet that an event would come of.
		WatchesRawSource(source.Func(func(_ context.Context,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(r.request())
			return nil
		}))
	r.present = map[string]client.Reader{}
	for _, g := range Guards(r.Namespace) {
		name := g.Policy.Name
		one, err := r.newCache(mgr, name)
		if err != nil {
			return err
		}
		r.present[name] = one
		b = b.WatchesRawSource(source.Kind[client.Object](one, &admissionv1.ValidatingAdmissionPolicy{}, once)).
			WatchesRawSource(source.Kind[client.Object](one, &admissionv1.ValidatingAdmissionPolicyBinding{}, once))
	}
	return b.WithOptions(backoff.Options()).Complete(r)
}

// request returns the only one: all is looked at together.
func (r *Reconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: Operator}}
}

// newCache makes a cache for what has one name, which is all that the operator may read, and lets the manager run it.
func (r *Reconciler) newCache(mgr ctrl.Manager, name string) (cache.Cache, error) {
	named := fields.OneTermEqualSelector("metadata.name", name)
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&admissionv1.ValidatingAdmissionPolicy{}:        {Field: named},
			&admissionv1.ValidatingAdmissionPolicyBinding{}: {Field: named},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache for the admission policy %s: %w", name, err)
	}
	if err := mgr.Add(one); err != nil {
		return nil, fmt.Errorf("run the cache for the admission policy %s: %w", name, err)
	}
	return one, nil
}
