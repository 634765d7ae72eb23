package operator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startRetry is the delay after a failed request at the start of the operator.
const startRetry = time.Second

// patientIndexer creates the cache's indexes. For each index, the cache requests the kind from the API server.
// The API server may not serve the kind yet if the operator was applied together with its
// CustomResourceDefinitions, and does not respond during an outage.
type patientIndexer struct {
	client.FieldIndexer
	*unread
}

// patient returns an indexer that retries for as long as the operator waits for its reads at the start.
func (u *unread) patient(indexer client.FieldIndexer) client.FieldIndexer {
	return patientIndexer{indexer, u}
}

// IndexField implements client.FieldIndexer.
func (p patientIndexer) IndexField(ctx context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	return p.retry(ctx, fmt.Sprintf("%T", kind), func() error { return p.FieldIndexer.IndexField(ctx, kind, field, values) })
}

// retry repeats a request at the start of the operator until it succeeds, as long as the operator waits at its start.
func (u *unread) retry(ctx context.Context, kind string, request func() error) error {
	for {
		err := request()
		if err == nil || !u.clock.Now().Before(u.until) {
			return err
		}
		u.note(kind, err)
		timer := u.clock.NewTimer(startRetry)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
