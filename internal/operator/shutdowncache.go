package operator

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// newShutdownAwareCache returns a constructor of caches that no longer block the manager once the operator must end. At
// its start, the manager of controller-runtime waits for its caches even if the context has ended. Without a
// responding API server, the manager would wait forever and use a full CPU core.
func newShutdownAwareCache(ends context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		return shutdownAwareCache{Cache: c, shutdown: ends.Done}, err
	}
}

// shutdownAwareCache is a cache that reports to be synced when the operator must end, so that the manager continues,
// and ends.
type shutdownAwareCache struct {
	cache.Cache
	shutdown func() <-chan struct{}
}

// WaitForCacheSync implements cache.Informers.
func (c shutdownAwareCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	synced := make(chan bool, 1)
	go func() { synced <- c.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-synced:
		return ok
	case <-c.shutdown():
		return true
	}
}
