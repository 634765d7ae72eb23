package operator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startRetryDelay is the delay after a failed request at the start of the operator.
const startRetryDelay = time.Second

// retryingIndexer creates the cache's indexes. For each index, the cache requests the kind from the API server.
// The API server may not serve the kind yet if the operator was applied together with its
// CustomResourceDefinitions, and does not respond during an outage.
type retryingIndexer struct {
	client.FieldIndexer
	*unreadableKinds
}

// newRetryingIndexer returns an indexer that retries for as long as the operator waits for its reads at the start.
func (u *unreadableKinds) newRetryingIndexer(indexer client.FieldIndexer) client.FieldIndexer {
	return retryingIndexer{indexer, u}
}

// IndexField implements client.FieldIndexer.
func (p retryingIndexer) IndexField(ctx context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	return p.retryAtStart(ctx, fmt.Sprintf("%T", kind), func() error { return p.FieldIndexer.IndexField(ctx, kind, field, values) })
}

// retryAtStart repeats a request at the start of the operator until it succeeds, as long as the operator waits at its
// start.
func (u *unreadableKinds) retryAtStart(ctx context.Context, kind string, request func() error) error {
	for {
		err := request()
		if err == nil || !u.clock.Now().Before(u.deadline) {
			return err
		}
		u.recordFailure(kind, err)
		timer := u.clock.NewTimer(startRetryDelay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
