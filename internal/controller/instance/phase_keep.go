package instance

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// keep is the phase that puts back on a Node what the operator owns there, without a connection to the host: pods for
// Linux must not find a Windows node without its taint.
type keep struct {
	nodes  nodes.Nodes
	events status.Recorder
	clock  clock.PassiveClock
}

// The operator puts back at once at first. From putBackAlarm times in a row on it warns, and pauses before it puts back
// again, so that it does not fight another writer. The pauses double from the first to the longest. All that begins anew
// after a calm time.
const (
	putBackAlarm        = 4
	firstPutBackPause   = time.Second
	longestPutBackPause = 5 * time.Minute
	putBackCalm         = 10 * time.Minute
)

// run puts back at once what was changed, and less and less often what another writer keeps changing.
func (p keep) run(ctx context.Context, s *scope.Scope) *result.Result {
	if err := p.nodes.DiscardDrained(ctx, s.Instance); err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "remove the record of an outdated drain from the Node", err)
	}
	lacks, err := p.nodes.Lacks(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	memory, now := &s.Session.PutBack, p.clock.Now()
	if !lacks {
		memory.Refused = nil
		return nil
	}
	if now.Sub(memory.Last) >= putBackCalm {
		memory.Times = 0
	}
	if rest := putBackPause(memory.Times) - now.Sub(memory.Last); rest > 0 {
		s.PutBackIn = rest
		return nil
	}
	memory.Refused = nil
	node, changed, err := p.nodes.PutBack(ctx, s)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		// A webhook, for example. It must not keep the operator from the node's certificates.
		memory.Times, memory.Last = max(memory.Times+1, putBackAlarm), now
		memory.Refused = result.API(v1alpha1.ConditionUpToDate, "restore the fields of the Node that the operator owns", err)
		s.PutBackIn = putBackPause(memory.Times)
		return nil
	}
	if err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "restore the fields of the Node that the operator owns", err)
	}
	if len(changed) > 0 {
		memory.Times, memory.Last = memory.Times+1, now
		p.events.Emit(status.NodeDriftRevertedEvent(s.Instance, node, changed, memory.Times >= putBackAlarm))
	}
	return nil
}

// putBackPause returns the pause after something was put back so many times in a row.
func putBackPause(times int) time.Duration {
	if times < putBackAlarm {
		return 0
	}
	pause := firstPutBackPause
	for i := putBackAlarm; i < times && pause < longestPutBackPause; i++ {
		pause *= 2
	}
	return min(pause, longestPutBackPause)
}
