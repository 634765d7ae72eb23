package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// DefaultReadTimeout is the timeout at the start of the operator for reading all watched kinds. After the timeout
// the operator ends, and Kubernetes restarts it; the log and the Pod's state contain the reason.
const DefaultReadTimeout = 2 * time.Minute

// unreadableKinds records the kinds that the operator cannot read. controller-runtime does not: its timeout error names
// an arbitrary kind, although the manager waited for all kinds.
type unreadableKinds struct {
	timeout  time.Duration
	deadline time.Time // the end of the limit
	clock    clock.Clock
	log      logr.Logger

	mu    sync.Mutex
	kinds map[string]refusal // by kind
}

// refusal is the last failed read of a kind.
type refusal struct {
	err error
	at  time.Time
}

func (c Config) newUnreadableKinds() *unreadableKinds {
	limit := cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	return &unreadableKinds{timeout: limit, deadline: c.Clock.Now().Add(limit), clock: c.Clock, log: c.Logger, kinds: map[string]refusal{}}
}

// handleWatchError records each failed read or watch of a kind, from all caches. The cache retries the request until it
// succeeds.
func (u *unreadableKinds) handleWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	u.recordFailure(reflector.TypeDescription(), err)
}

func (u *unreadableKinds) recordFailure(kind string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
		return // the end of a watch is normal
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.kinds[kind]
	u.kinds[kind] = refusal{err, u.clock.Now()}
	if before.err == nil || before.err.Error() != err.Error() {
		u.log.Error(err, "a kind cannot be read; the operator retries", "kind", kind)
	}
}

// explainError adds the kinds with recent read failures to the final error of the operator.
func (u *unreadableKinds) explainError(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var found []string
	for _, kind := range slices.Sorted(maps.Keys(u.kinds)) {
		if last := u.kinds[kind]; u.clock.Since(last.at) < u.timeout {
			found = append(found, fmt.Sprintf("%s (%v)", kind, last.err))
		}
	}
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("the API server does not allow the operator to read %s; deploy/rbac contains the required permissions: %w",
		strings.Join(found, ", "), err)
}
