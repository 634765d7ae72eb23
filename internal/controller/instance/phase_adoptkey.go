package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// adoptKeyPhase is the phase that records a new key.
type adoptKeyPhase struct {
	idle   *idlePhase
	nodes  nodes.Nodes
	events status.Recorder
}

// reconcile records the current key for a host that was reached with that key and is otherwise up to date. Nothing on
// the host changes.
func (p adoptKeyPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if !s.OnlyKeyDiffers {
		return nil
	}
	node, err := p.nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) {
		return nil // a recent change, which the other phases reconcile
	}
	if err := p.nodes.Activate(ctx, s.Instance, node, s.Key.Hash()); err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "annotate the Node with the key", err)
	}
	s.Instance.Status.PublicKeyHash = s.Key.Hash()
	p.events.Emit(status.SSHKeyUpdatedEvent(s.Instance, s.Key.Fingerprint()))
	s.Host.Close()
	return p.idle.finishUpToDate(ctx, s)
}
