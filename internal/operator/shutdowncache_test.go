package operator

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// emptyCache is never synced, as without a responding API server.
type emptyCache struct{ cache.Cache }

func (emptyCache) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestShutdownAwareCache_ShutdownEndsWaitForSync(t *testing.T) {
	ends, end := context.WithCancel(t.Context())
	waited := make(chan bool)
	go func() { waited <- shutdownAwareCache{emptyCache{}, ends.Done}.WaitForCacheSync(t.Context()) }()
	select {
	case <-waited:
		t.Fatal("it counts as synced before the end")
	default:
	}
	end()
	if !<-waited {
		t.Error("the manager, which waits for the cache before it ends, is not let go on")
	}
}

func TestShutdownAwareCache_TimeoutIsNotSynced(t *testing.T) {
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if (shutdownAwareCache{emptyCache{}, t.Context().Done}).WaitForCacheSync(late) {
		t.Error("it counts as synced")
	}
}
