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

// driftPhase is the phase that reverts drift of fields owned by the operator on a Node, without a connection to the
// host. Without its taint, a Windows node would attract Linux pods.
type driftPhase struct {
	nodes  nodes.Nodes
	events status.Recorder
	clock  clock.PassiveClock
}

// The operator first reverts drift immediately. After revertWarnThreshold consecutive reverts, it emits a warning and
// pauses before each further revert, to avoid a fight with another writer. The pause doubles from minRevertBackoff to
// maxRevertBackoff, and is reset after revertQuietPeriod without a revert.
const (
	revertWarnThreshold = 4
	minRevertBackoff    = time.Second
	maxRevertBackoff    = 5 * time.Minute
	revertQuietPeriod   = 10 * time.Minute
)

// reconcile reverts drift immediately, with increasing pauses if another writer keeps changing the fields.
func (p driftPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if err := p.nodes.DiscardDrained(ctx, s.Instance); err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "remove the record of an outdated drain from the Node", err)
	}
	lacks, err := p.nodes.HasDrift(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	memory, now := &s.Session.Reverts, p.clock.Now()
	if !lacks {
		memory.Refused = nil
		return nil
	}
	if now.Sub(memory.Last) >= revertQuietPeriod {
		memory.Times = 0
	}
	if rest := revertBackoff(memory.Times) - now.Sub(memory.Last); rest > 0 {
		s.RevertBackoff = rest
		return nil
	}
	memory.Refused = nil
	node, changed, err := p.nodes.RevertDrift(ctx, s)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		// An error of a webhook, for example, must not block the renewal of the node's certificates.
		memory.Times, memory.Last = max(memory.Times+1, revertWarnThreshold), now
		memory.Refused = result.FromAPIError(v1alpha1.ConditionUpToDate, "restore the fields of the Node that the operator owns", err)
		s.RevertBackoff = revertBackoff(memory.Times)
		return nil
	}
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "restore the fields of the Node that the operator owns", err)
	}
	if len(changed) > 0 {
		memory.Times, memory.Last = memory.Times+1, now
		p.events.Emit(status.NodeDriftRevertedEvent(s.Instance, node, changed, memory.Times >= revertWarnThreshold))
	}
	return nil
}

// revertBackoff returns the pause after a number of consecutive reverts.
func revertBackoff(times int) time.Duration {
	if times < revertWarnThreshold {
		return 0
	}
	pause := minRevertBackoff
	for i := revertWarnThreshold; i < times && pause < maxRevertBackoff; i++ {
		pause *= 2
	}
	return min(pause, maxRevertBackoff)
}
