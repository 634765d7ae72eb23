package forecast

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/text"
)

// noteRefusal records in a forecast with changes that the operator holds them back because a new host would be
// refused.
func (f Forecaster) noteRefusal(s *scope.Scope, node *corev1.Node, made *Forecast) {
	if decision := f.supportNewHost(s, node); !decision.Allowed {
		made.HeldBack = text.Printable(decision.Message)
	}
}

// supportNewHost decides whether a new host as replacement for an instance's host would be supported. node may
// be nil. The phase eligible makes the same decision: an update of Windows needs a requested restart, which is
// not held back.
func (f Forecaster) supportNewHost(s *scope.Scope, node *corev1.Node) policy.Decision {
	decision := f.Line.SupportCluster(s.Cluster)
	if decision.Allowed && s.OfMachine() {
		decision = support.Machine(s.Cluster, s.Instance.Spec.Source.Machine.Name)
	}
	if !decision.Allowed || node == nil || !s.Released(node) || !nodeidentity.Ready(node) {
		return decision
	}
	known, replaced := s.Instance.Status.SpecDigest != "", (&drain.Turn{Version: f.Specs.Version}).Replaced(s, node)
	if known && !replaced && (nodes.RebootWanted(node) || s.Instance.Status.RequestedReboot != nil) {
		return decision
	}
	return f.Line.SupportNode(node.Status.NodeInfo, s.Cluster)
}
