package operator

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// endingWith makes caches that nobody waits for any more once the operator is to end. The manager of controller-runtime
// waits for its caches when it starts, even if its context has ended: without an API server that answers it would wait forever,
// at the cost of a whole core.
func endingWith(ends context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		return endingCache{Cache: c, ended: ends.Done}, err
	}
}

// endingCache is a cache that says that it is synced when the operator is to end, so that the manager goes on, and ends.
type endingCache struct {
	cache.Cache
	ended func() <-chan struct{}
}

// WaitForCacheSync implements cache.Informers.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	synced := make(chan bool, 1)
	go func() { synced <- c.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-synced:
		return ok
	case <-c.ended():
		return true
	}
}
