package operator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexRetry is how often an index is tried again.
const indexRetry = time.Second

// patientIndexer makes the cache's indexes. For each, the cache asks the API server for the kind, which it may not serve
// yet when the operator was applied together with its CustomResourceDefinitions, and which it does not tell while it is
// away.
type patientIndexer struct {
	client.FieldIndexer
	*unread
	until time.Time
}

// patient returns an indexer that tries for as long as the operator waits for what it reads at its start.
func (u *unread) patient(indexer client.FieldIndexer) client.FieldIndexer {
	return patientIndexer{indexer, u, u.clock.Now().Add(u.limit)}
}

// IndexField implements client.FieldIndexer.
func (p patientIndexer) IndexField(ctx context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	for {
		err := p.FieldIndexer.IndexField(ctx, kind, field, values)
		if err == nil || !p.clock.Now().Before(p.until) {
			return err
		}
		p.note(fmt.Sprintf("%T", kind), err)
		timer := p.clock.NewTimer(indexRetry)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
