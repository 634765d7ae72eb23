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

// replacement is the phase that waits for a Machine to be replaced.
type replacement struct {
	turn  *drain.Turn
	nodes nodes.Nodes
}

// run leaves the host of a Machine unchanged if the Machine is upgraded by replacement. The digest of the applied
// spec shows whether anything would change. A release without changes for the host only updates the annotation,
// which has been done before this phase.
func (p replacement) run(ctx context.Context, s *scope.Scope) *result.Result {
	if !s.OfMachine() || s.NodeName() == "" {
		return nil
	}
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.Released(node) || !p.turn.Replaced(s, node) {
		return nil
	}
	if s.Instance.Status.SpecDigest == "" && !nodes.IsOlder(node) {
		return nil // unknown configuration: the host must be inspected
	}
	s.Works = nodeidentity.Ready(node)
	if nodes.IsOlder(node) {
		nodes.MarkReady(s, node)
	}
	return p.turn.ReplacementPending(s)
}
