package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// servingNode returns the Node of an instance if this operator or a legacy operator has activated the node; nil
// otherwise.
func servingNode(ctx context.Context, s *scope.Scope, reader nodes.Nodes) (*corev1.Node, error) {
	if ref := s.Instance.Status.NodeRef; ref == nil || ref.UID == "" {
		return nil, nil
	}
	node, err := reader.GetCached(ctx, s.Instance)
	if err != nil || node == nil || !s.WasActivated(node) {
		return nil, err
	}
	return node, nil
}

// refuseHost returns the result for a refused host. A node in service stays Ready while its kubelet reports
// Ready, because the refusal only prevents changes by the operator.
func refuseHost(s *scope.Scope, node *corev1.Node, o *result.Result) *result.Result {
	if node == nil {
		return o
	}
	s.NodeInService = nodeidentity.IsReady(node)
	switch unchanged := s.IsHostUnchanged(); {
	case unchanged && s.NodeInService:
		s.RestoreTrueConditions()
	case !unchanged && (s.NodeInService || nodes.IsLegacy(node)) && (!nodes.IsCordoned(node) || nodes.IsLegacy(node) && !nodeidentity.IsDrained(node)):
		nodes.MarkReady(s, node)
	default:
		return o
	}
	o.Condition = v1alpha1.ConditionUpToDate
	return o
}
