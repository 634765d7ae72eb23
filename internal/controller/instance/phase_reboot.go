package instance

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// restartedPoll is the delay before the check of a host that has restarted on its own.
const restartedPoll = 500 * time.Millisecond

// reboot is the phase that restarts a host on request.
type reboot struct {
	turn   *drain.Turn
	nodes  nodes.Nodes
	events status.Recorder
	clock  clock.PassiveClock
}

// run restarts the host of a node in service at the request of an administrator. The annotation is removed when
// the node is activated again after verification. The boot ID is recorded before the restart, so that the host
// restarts exactly once, even if a process is killed in between.
func (p reboot) run(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	requested := s.Instance.Status.RequestedReboot
	if node == nil || !s.Released(node) || requested == nil && !nodes.RebootWanted(node) {
		return nil
	}
	boot := s.Host.Facts.System.BootID
	if requested != nil && requested.BootID != boot {
		return nil // done; the node is checked next
	}
	if requested != nil && !nodes.RebootWanted(node) {
		s.Instance.Status.RequestedReboot = nil
		return nil // and no longer requested
	}
	line, pending, err := s.Host.Reboot(boot, func() *result.Result {
		// The node may have been drained long ago for a restart that did not happen.
		s.Instance.Status.RequestedReboot = nil
		if node, err = p.nodes.Of(ctx, s.Instance); err != nil { // a live read, because the node must be drained now
			return result.API(v1alpha1.ConditionReady, "read the Node", err)
		}
		if node == nil {
			return result.WriteFirst(v1alpha1.ConditionReady)
		}
		if o := p.turn.Acquire(ctx, s, node, v1alpha1.CauseReboot); o != nil {
			return o
		}
		if o := p.turn.Drain(ctx, s, node, v1alpha1.CauseReboot); o != nil {
			return o
		}
		s.Instance.Status.RequestedReboot = requested
		if requested == nil {
			s.Instance.Status.RequestedReboot = &v1alpha1.RequestedReboot{BootID: boot, StartedAt: metav1.NewTime(p.clock.Now())}
			p.events.Emit(status.RebootBeginsEvent(s.Instance, node))
		}
		return nil
	})
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.Failed(v1alpha1.ConditionPrepared, err)
	}
	if line.Type != verb.TypeRebooting {
		s.Host.Close()
		return &result.Result{
			Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonInProgress, Outcome: result.Wait, KeepsTurn: true,
			After:   restartedPoll,
			Message: "The host has restarted in the meantime.", Next: "The operator checks the host again.",
		}
	}
	return s.BeginRestart()
}
