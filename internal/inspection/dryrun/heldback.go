package dryrun

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// recordRefusal records in a forecast with changes that the operator holds them back because a new host would be
// refused.
func (f Forecaster) recordRefusal(s *scope.Scope, node *corev1.Node, made *Forecast) {
	if decision := f.supportNewHost(s, node); !decision.Allowed {
		made.HeldBack = sanitize.Printable(decision.Message)
	}
}

// supportNewHost decides whether a new host as replacement for an instance's host would be supported. node may
// be nil. The phase eligible makes the same decision: an update of Windows needs a requested restart, which is
// not held back.
func (f Forecaster) supportNewHost(s *scope.Scope, node *corev1.Node) policy.Decision {
	decision := f.Line.SupportCluster(s.Cluster)
	if decision.Allowed && s.HasMachine() {
		decision = support.Machine(s.Cluster, s.Instance.Spec.Source.Machine.Name)
	}
	if !decision.Allowed || node == nil || !s.WasActivated(node) || !nodeidentity.IsReady(node) {
		return decision
	}
	known, replaced := s.Instance.Status.SpecDigest != "", (&drain.Disruptor{Version: f.Specs.Version, Specs: f.Specs}).NeedsReplacement(s, node)
	if known && !replaced && (nodes.IsRebootRequested(node) || s.Instance.Status.RequestedReboot != nil) {
		return decision
	}
	return f.Line.SupportNode(node.Status.NodeInfo, s.Cluster)
}
