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

// DefaultReadLimit is how long the operator waits at its start until all kinds that its controllers follow have been
// read. It ends after that: Kubernetes starts it again, and its log and the Pod's state say why.
const DefaultReadLimit = 2 * time.Minute

// unread knows the kinds that the API server does not let the operator read. controller-runtime does not: its error at
// the end of the wait names whatever kind it waited for, although all were waited for.
type unread struct {
	limit time.Duration
	until time.Time // the end of the limit
	clock clock.Clock
	log   logr.Logger

	mu    sync.Mutex
	kinds map[string]refusal // by kind
}

// refusal is the last failed read of a kind.
type refusal struct {
	err error
	at  time.Time
}

func (c Config) newUnread() *unread {
	limit := cmp.Or(c.ReadLimit, DefaultReadLimit)
	return &unread{limit: limit, until: c.Clock.Now().Add(limit), clock: c.Clock, log: c.Logger, kinds: map[string]refusal{}}
}

// handle takes each failed read or watch of a kind, from all caches. It is tried again until it succeeds.
func (u *unread) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	u.note(reflector.TypeDescription(), err)
}

func (u *unread) note(kind string, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
		return // a watch that ends is usual
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.kinds[kind]
	u.kinds[kind] = refusal{err, u.clock.Now()}
	if before.err == nil || before.err.Error() != err.Error() {
		u.log.Error(err, "a kind that the operator follows cannot be read; it is tried again", "kind", kind)
	}
}

// explain adds the kinds that could not be read of late to the error with which the operator ends.
func (u *unread) explain(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var found []string
	for _, kind := range slices.Sorted(maps.Keys(u.kinds)) {
		if last := u.kinds[kind]; u.clock.Since(last.at) < u.limit {
			found = append(found, fmt.Sprintf("%s (%v)", kind, last.err))
		}
	}
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("the API server did not let the operator read %s; deploy/rbac has the rights that it needs: %w",
		strings.Join(found, ", "), err)
}
