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

// restartedPoll is how soon a host is looked at again that has restarted by itself.
const restartedPoll = 500 * time.Millisecond

// reboot is the phase that restarts a host because somebody has asked for it.
type reboot struct {
	turn   *drain.Turn
	nodes  nodes.Nodes
	events status.Recorder
	clock  clock.PassiveClock
}

// run restarts the host of a node in service because an administrator has asked for it. The annotation is taken away
// with the node's release, when it was checked to work again. Which boot is to end is written down first, so that there
// is one restart and no second, whoever is killed meanwhile.
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
		return nil // it was done; the node is checked next
	}
	if requested != nil && !nodes.RebootWanted(node) {
		s.Instance.Status.RequestedReboot = nil
		return nil // and nobody wants it any more
	}
	line, pending, err := s.Host.Reboot(boot, func() *result.Result {
		// It may be long ago that the node had its turn and was drained for a restart that was not done.
		s.Instance.Status.RequestedReboot = nil
		if node, err = p.nodes.Of(ctx, s.Instance); err != nil { // that is drained must be true now
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
