package instance

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// rebootRecheckDelay is the delay before the check of a host that has restarted on its own.
const rebootRecheckDelay = 500 * time.Millisecond

// rebootPhase is the phase that restarts a host on request.
type rebootPhase struct {
	disruptor *drain.Disruptor
	nodes     nodes.Nodes
	events    status.Recorder
	clock     clock.PassiveClock
}

// reconcile restarts the host of a node in service at the request of an administrator. The annotation is removed when
// the node is activated again after verification. The boot ID is recorded before the restart, so that the host
// restarts exactly once, even if a process is killed in between.
func (p rebootPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	requested := s.Instance.Status.RequestedReboot
	if node == nil || !s.WasActivated(node) || requested == nil && !nodes.IsRebootRequested(node) {
		return nil
	}
	boot := s.Host.Facts.System.BootID
	if requested != nil && requested.BootID != boot {
		return nil // done; the node is checked next
	}
	if requested != nil && !nodes.IsRebootRequested(node) {
		s.Instance.Status.RequestedReboot = nil
		return nil // and no longer requested
	}
	line, pending, err := s.Host.Reboot(boot, func() *result.Result {
		// The node may have been drained long ago for a restart that did not happen.
		s.Instance.Status.RequestedReboot = nil
		if node, err = p.nodes.Get(ctx, s.Instance); err != nil { // a live read, because the node must be drained now
			return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
		}
		if node == nil {
			return result.WriteFirst(v1alpha1.ConditionReady)
		}
		if o := p.disruptor.AcquireSlot(ctx, s, node, v1alpha1.CauseReboot); o != nil {
			return o
		}
		if o := p.disruptor.Drain(ctx, s, node, v1alpha1.CauseReboot); o != nil {
			return o
		}
		s.Instance.Status.RequestedReboot = requested
		if requested == nil {
			s.Instance.Status.RequestedReboot = &v1alpha1.RequestedReboot{BootID: boot, StartedAt: metav1.NewTime(p.clock.Now())}
			p.events.Emit(status.RebootRequestedEvent(s.Instance, node))
		}
		return nil
	})
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionPrepared, err)
	}
	if line.Type != agentapi.TypeRebooting {
		s.Host.Close()
		return &result.Result{
			Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonInProgress, Outcome: result.Wait, HoldsSlot: true,
			RequeueAfter: rebootRecheckDelay,
			Message:      "The host has restarted in the meantime.", NextAction: "The operator checks the host again.",
		}
	}
	return s.BeginRestart()
}
