package operator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
)

// delayedIndexer is a cache for an API server that serves the operator's own kinds only after a time.
type delayedIndexer struct {
	served  time.Time
	indexed map[string]int // by field
}

func (n delayedIndexer) IndexField(_ context.Context, kind client.Object, field string, _ client.IndexerFunc) error {
	if _, isInstance := kind.(*v1alpha1.WindowsInstance); isInstance && time.Now().Before(n.served) {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "WindowsInstance"}}
	}
	n.indexed[field]++
	return nil
}

func TestIndexes_AddedWhenKindsAreServed(t *testing.T) {
	addIndexes := func(ctx context.Context, after time.Duration) (cache delayedIndexer, elapsed time.Duration, err error) {
		begin := time.Now()
		cache = delayedIndexer{begin.Add(after), map[string]int{}}
		u := Config{Clock: clock.RealClock{}, Logger: logr.Discard()}.newUnreadableKinds()
		err = index.Add(ctx, u.newRetryingIndexer(cache))
		return cache, time.Since(begin), err
	}
	t.Run("and makes each index once when they are", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cache, elapsed, err := addIndexes(t.Context(), 30*time.Second)
			if err != nil || elapsed > 31*time.Second || len(cache.indexed) != len(index.Indexes()) {
				t.Errorf("%v after %s: %v", err, elapsed, cache.indexed)
			}
			for field, times := range cache.indexed {
				if times != 1 {
					t.Errorf("%s is made %d times", field, times)
				}
			}
		})
	})
	t.Run("but ends when it has waited for all that it reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, elapsed, err := addIndexes(t.Context(), time.Hour)
			if !meta.IsNoMatchError(err) || elapsed != DefaultReadTimeout {
				t.Errorf("%v after %s", err, elapsed)
			}
		})
	})
	t.Run("or when it is ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			time.AfterFunc(1500*time.Millisecond, end)
			if _, elapsed, err := addIndexes(ctx, time.Hour); err == nil || elapsed != 1500*time.Millisecond {
				t.Errorf("%v after %s", err, elapsed)
			}
		})
	})
}
