package operator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startRetry is the delay after a failed request at the start of the operator.
const startRetry = time.Second

// patientIndexer makes the cache's indexes. For each, the cache asks the API server for the kind, which it may not serve
// yet when the operator was applied together with its CustomResourceDefinitions, and which it does not tell while it is
// away.
type patientIndexer struct {
	client.FieldIndexer
	*unread
}

// patient returns an indexer that tries for as long as the operator waits for what it reads at its start.
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
