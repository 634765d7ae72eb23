package instance

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// eligibilityPhase is the phase that checks the eligibility of a host without a connection to the host.
type eligibilityPhase struct {
	line      support.ReleaseLine
	disruptor *drain.Disruptor
	nodes     nodes.Nodes
	specs     desired.SpecBuilder
}

// reconcile refuses a host before any connection: in an unsupported cluster, of a Machine that cannot become a node,
// or of a node in service with an unsupported Windows build. The facts of the cluster and the Node are watched, so no
// retry is needed.
func (p eligibilityPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := servingNode(ctx, s, p.nodes)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	decision := p.line.SupportCluster(s.Cluster)
	if decision.Allowed && s.HasMachine() {
		decision = support.Machine(s.Cluster, s.Instance.Spec.Source.Machine.Name)
	}
	if decision.Allowed {
		if o := p.checkPrograms(s, node); o != nil {
			return o
		}
		return p.checkBuild(s, node)
	}
	next := "The operator continues when the cluster is supported. Until then, the operator does not connect to the host."
	if decision.Reason == v1alpha1.ReasonMachineNameTooLong {
		next = "Delete the Machine and create a MachineSet with a shorter name. The operator does not connect to the host."
	}
	return refuseHost(s, node, &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: result.Blocked,
		Message: decision.Message, NextAction: next,
	})
}

// checkPrograms refuses to contact the host of a node in service if the payload lacks a program for the cluster's
// version of Kubernetes. Only another release of the operator has that program.
func (p eligibilityPhase) checkPrograms(s *scope.Scope, node *corev1.Node) *result.Result {
	if node == nil {
		return nil
	}
	_, err := p.specs.Build(s, node)
	var lacks *nodespec.MissingProgramsError
	if !errors.As(err, &lacks) {
		return nil
	}
	o := result.FromSpecError(err)
	o.Outcome = result.Blocked
	return refuseHost(s, node, o)
}

// checkBuild refuses to change or replace a node in service if a new host with the same Windows build would be
// refused. Only the report of a Ready node is current. A requested restart is not refused, because a Windows
// update needs the restart. A new key is not refused either.
func (p eligibilityPhase) checkBuild(s *scope.Scope, node *corev1.Node) *result.Result {
	if node == nil || !nodeidentity.IsReady(node) || s.OnlyKeyDiffers {
		return nil
	}
	known, replaced := s.Instance.Status.SpecDigest != "", p.disruptor.NeedsReplacement(s, node)
	if known && !replaced && (nodes.IsRebootRequested(node) || s.Instance.Status.RequestedReboot != nil) {
		return nil
	}
	decision := p.line.SupportNode(node.Status.NodeInfo, s.Cluster)
	if decision.Allowed {
		return nil
	}
	return refuseHost(s, node, &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: result.Blocked,
		NeedsReplacement: replaced && (known || nodes.IsLegacy(node)),
		Message:          decision.Message, NextAction: buildRemedy(s, replaced),
	})
}

// buildRemedy returns the next action for a node in service with a Windows build that is unsupported for new
// hosts.
func buildRemedy(s *scope.Scope, replaced bool) string {
	const kept = " Until then, the node is neither changed nor replaced."
	switch {
	case replaced:
		return "Give its MachineSet an image with a supported build, or update Windows on the host. The operator then replaces the Machine." + kept
	case s.HasMachine():
		return "Update Windows on the host; or give its MachineSet an image with a supported build, and delete the Machine." + kept
	}
	return "Update Windows on the host; the operator then continues." + kept
}
