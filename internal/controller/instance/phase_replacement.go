package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// replacementPhase is the phase that waits for a Machine to be replaced.
type replacementPhase struct {
	disruptor *drain.Disruptor
	nodes     nodes.Nodes
}

// reconcile leaves the host of a Machine unchanged if the Machine is upgraded by replacement. The digest of the applied
// spec shows whether anything would change. A release without changes for the host only updates the annotation,
// which has been done before this phase.
func (p replacementPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if !s.HasMachine() || s.NodeName() == "" {
		return nil
	}
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) || !p.disruptor.NeedsReplacement(s, node) {
		return nil
	}
	if s.Instance.Status.SpecDigest == "" && !nodes.IsLegacy(node) {
		return nil // unknown configuration: the host must be inspected
	}
	s.NodeInService = nodeidentity.IsReady(node)
	if nodes.IsLegacy(node) {
		nodes.MarkReady(s, node)
	}
	return p.disruptor.ReplacementPending(s)
}
