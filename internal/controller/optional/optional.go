// Package optional watches kinds that the API server may not have, not yet have, or no longer have.
//
// A controller of controller-runtime starts when every kind that the manager's cache keeps has been read, its own and
// those of all others, and the operator ends when that takes longer than two minutes. Such a kind is therefore kept in
// a cache of its own, and no controller waits for it.
package optional

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// NewCache makes a cache that the manager runs and that no controller waits for. The API server must have the objects'
// kinds by then, otherwise meta.IsNoMatchError recognizes the error. A nil map keeps every kind that is requested.
func NewCache(mgr ctrl.Manager, objects map[client.Object]cache.ByObject) (cache.Cache, error) {
	kept, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         objects,
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache for optional kinds: %w", err)
	}
	if err := mgr.Add(kept); err != nil {
		return nil, fmt.Errorf("run the cache for optional kinds: %w", err)
	}
	return kept, nil
}

// Kind is like source.Kind, but a controller starts without it. Events of the objects arrive once they can be read.
func Kind(kept cache.Cache, object client.Object, handle handler.EventHandler,
	predicates ...predicate.Predicate) source.Source {
	return unawaited{source.Kind(kept, object, handle, predicates...)}
}

// unawaited hides that the source can be waited for.
type unawaited struct{ source.Source }

// String names the source in the log.
func (u unawaited) String() string { return fmt.Sprint(u.Source) }
