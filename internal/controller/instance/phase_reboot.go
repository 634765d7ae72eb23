package instance

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// restartedPoll is how soon a host is looked at again that has restarted by itself.
const restartedPoll = 500 * time.Millisecond

// reboot is the phase that restarts a host because somebody has asked for it.
type reboot struct {
	link   *link.Link
	turn   *turn.Turn
	status status.Writer
	nodes  nodes.Nodes
	events event.Recorder
	clock  clock.PassiveClock
}

// run restarts the host of a node in service because an administrator has asked for it. The annotation is taken away
// with the node's release, when it was checked to work again. Which boot is to end is written down first, so that there
// is one restart and no second, whoever is killed meanwhile.
func (p reboot) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	requested := s.Instance.Status.RequestedReboot
	if node == nil || !s.Released(node) || requested == nil && !nodes.RebootWanted(node) {
		return nil
	}
	boot := s.Session.Facts.System.BootID
	if requested != nil && requested.BootID != boot {
		return nil // it was done; the node is checked next
	}
	// It may be long ago that the node had its turn and was drained for a restart that was not done.
	s.Instance.Status.RequestedReboot = nil
	if requested != nil && !nodes.RebootWanted(node) {
		return nil // and nobody wants it any more
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
		if err := p.status.Patch(ctx, s); err != nil {
			return obstacle.API(v1alpha1.ConditionPrepared, "note the restart", err)
		}
		p.events.Emit(event.RebootBegins(s.Instance, node))
	}
	line, err := p.link.Run(ctx, s, verb.Reboot, "--boot-id", "boot:"+boot)
	if err != nil {
		return p.link.Failed(s, v1alpha1.ConditionPrepared, err)
	}
	if line.Type != verb.TypeRebooting {
		p.link.Close(s)
		return &obstacle.Obstacle{
			Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonInProgress, Outcome: obstacle.Wait, KeepsTurn: true,
			After:   restartedPoll,
			Message: "The host has restarted in the meantime.", Next: "The operator looks at it again.",
		}
	}
	return p.link.BeginRestart(s)
}
