package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// AwaitSlot acquires the disruption slot before the operator contacts the host, if a disruption is certain: a restart
// was requested, or the agent has reported that this spec is disruptive. While the instance waits for the slot, there
// is no connection to the host. If the last connection to the host failed, AwaitSlot does nothing: an unreachable
// host must not hold a slot, and the node stays in service.
func (t *Disruptor) AwaitSlot(ctx context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; s.Session.Unresponsive || ref == nil || ref.UID == "" {
		return nil // A host that was not a node has no slot to wait for. If it is a node now, Prepare acquires the slot.
	}
	node, err := t.Nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) {
		return nil
	}
	change, cause := "", v1alpha1.DisruptionCause("")
	switch {
	case nodes.IsRebootRequested(node) && s.Instance.Status.RequestedReboot == nil:
		change, cause = scope.RebootPending, v1alpha1.CauseReboot
	case s.Session.PendingDisruption != "":
		spec, err := t.Specs.Build(s, node)
		if err != nil || spec.Digest() != s.Session.PendingDisruption {
			s.Session.PendingDisruption = ""
			return nil
		}
		change, cause = spec.Digest(), t.Changes.CauseOf(s, node)
	default:
		return nil
	}
	if o := t.AcquireSlot(ctx, s, node, cause); o != nil {
		s.Host.Close()
		s.Session.PendingDisruption = change
		return o
	}
	return nil
}

// NeedsReplacement reports whether another operator version configured the node and its Machine must be replaced. An
// upgrade that changes no service whose restart affects pods, such as the upgrade of the agent, is done in place.
func (t *Disruptor) NeedsReplacement(s *scope.Scope, node *corev1.Node) bool {
	return t.IsReplacedByUpgrade(s, node) && !t.hasConfiguration(s)
}

// IsReplacedByUpgrade reports whether the Machine of a node is replaced if its upgrade to this version of the operator
// disrupts pods.
func (t *Disruptor) IsReplacedByUpgrade(s *scope.Scope, node *corev1.Node) bool {
	version := node.Annotations[v1alpha1.AnnotationVersion]
	return s.HasMachine() && s.Instance.Spec.UpgradeStrategy == v1alpha1.UpgradeReplace && version != "" && version != t.Version
}

// hasConfiguration reports whether the services of an unchanged host have the desired configuration.
func (t *Disruptor) hasConfiguration(s *scope.Scope) bool {
	digest := s.Instance.Status.ConfigurationDigest
	return s.IsHostUnchanged() && digest != "" && digest == t.Specs.ConfigurationDigest(s.Cluster)
}

// ReplacementPending returns the wait for the disruption slot of a Machine that must be replaced.
func (t *Disruptor) ReplacementPending(s *scope.Scope) *result.Result {
	if s.NodeInService && s.Instance.Status.SpecDigest != "" {
		s.RestoreTrueConditions()
	}
	machine := nodes.MachineName(s.Instance.Spec.Source)
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonReplacementPending,
		Outcome: result.Wait, NeedsReplacement: true,
		Message: "The node was configured by another version of the operator, so the operator deletes Machine " +
			machine + " when the WindowsDisruptionPolicy allows it.",
		NextAction: "The MachineSet then creates a replacement, which this version configures. To change hosts in place instead: oc annotate machineset <name> -n " +
			v1alpha1.MachineNamespace + " " + v1alpha1.AnnotationUpgradeStrategy + "=" + string(v1alpha1.UpgradeInPlace),
	}
}
