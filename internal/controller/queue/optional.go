package queue

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// NewOptionalCache returns a cache for kinds that the API server need not serve. The manager runs the cache, and no
// controller waits for it. With the manager's cache, a controller of controller-runtime starts only when every kind
// in that cache has been read. If this takes longer than two minutes, the operator ends. The API server must serve
// the kinds of objects when NewOptionalCache is called; otherwise meta.IsNoMatchError recognizes the error. A nil
// map keeps every requested kind.
func NewOptionalCache(mgr ctrl.Manager, objects map[client.Object]cache.ByObject) (cache.Cache, error) {
	kept, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         objects,
	})
	if err != nil {
		return nil, fmt.Errorf("create a cache for optional kinds: %w", err)
	}
	if err := mgr.Add(kept); err != nil {
		return nil, fmt.Errorf("run the cache for optional kinds: %w", err)
	}
	return kept, nil
}

// OptionalKind is like source.Kind, but a controller starts without it. Events of the objects arrive once the kind
// can be read.
func OptionalKind(kept cache.Cache, object client.Object, handle handler.EventHandler,
	predicates ...predicate.Predicate) source.Source {
	return nonBlockingSource{source.Kind(kept, object, handle, predicates...)}
}

// nonBlockingSource hides that the source can be waited for.
type nonBlockingSource struct{ source.Source }

// String names the source in the log.
func (u nonBlockingSource) String() string { return fmt.Sprint(u.Source) }
