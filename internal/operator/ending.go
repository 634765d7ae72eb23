package operator

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// endingWith returns a constructor of caches that no longer block the manager once the operator must end. At
// its start, the manager of controller-runtime waits for its caches even if the context has ended. Without a
// responding API server, the manager would wait forever and use a full CPU core.
func endingWith(ends context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		return endingCache{Cache: c, ended: ends.Done}, err
	}
}

// endingCache is a cache that reports to be synced when the operator must end, so that the manager continues,
// and ends.
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
