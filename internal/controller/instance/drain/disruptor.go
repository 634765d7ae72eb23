// Package drain drains a node in service before the host is changed. It acquires the disruption slot of the
// gate, cordons the node, evicts the pods with kubectl's drain library, and releases a slot that cannot be
// used. The package does not decide on changes.
package drain

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// gatePollInterval is the interval between requests of an instance that waits for other nodes. gateIdleInterval is the
// interval for all other waits. A watched change ends both waits earlier.
const (
	gatePollInterval = time.Minute
	gateIdleInterval = 10 * time.Minute
)

// Disruptor acquires the disruption slot before a node in service is disrupted, and then drains the node.
type Disruptor struct {
	Gate     disruption.Gate
	Nodes    nodes.Nodes
	Machines nodes.Machines
	Drainer  Drainer
	Events   status.Recorder
	Specs    desired.SpecBuilder
	Changes  *rollback.FailedChanges
	Clock    clock.PassiveClock
	Version  string // of the operator
}

// Prepare prepares the node of a host for a change of the host, and reports whether the node is in service.
// Prepare requests the agent's plan for such a node. A plan that does not affect pods is applied at once. A
// disruptive plan waits until the node holds a disruption slot and is drained.
func (t *Disruptor) Prepare(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec) (inService bool, o *result.Result) {
	read := t.Nodes.GetCached
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.UID != "" {
		read = t.Nodes.Get // "in service" and "drained" must be current
	}
	node, err := read(ctx, s.Instance)
	if err != nil {
		return false, result.FromAPIError(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) {
		return false, nil
	}
	if s.Session.PendingDisruption != spec.Digest() {
		planned, pending, err := s.Host.Plan(spec, s.Session.SendFullFiles)
		if pending != nil {
			return false, pending
		}
		if err != nil {
			return false, s.HandleFailure(v1alpha1.ConditionUpToDate, err)
		}
		if planned.IsDisruptive() && t.IsReplacedByUpgrade(s, node) {
			return false, t.ReplacementPending(s)
		}
		if !planned.IsDisruptive() {
			return true, nil
		}
	}
	if facts := s.Host.Facts; facts != nil && facts.Applied != spec.Digest() {
		t.WarnNoRollback(s, facts.NoRollbackReason)
	}
	cause := t.Changes.CauseOf(s, node)
	if o := t.AcquireSlot(ctx, s, node, cause); o != nil {
		s.Session.PendingDisruption = spec.Digest()
		s.Host.Close()
		return false, o
	}
	return false, t.Drain(ctx, s, node, cause)
}

// AcquireSlot requests a disruption slot from the gate. A nil result means that the node may be disrupted.
func (t *Disruptor) AcquireSlot(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *result.Result {
	s.SlotReleasePending = false
	held, err := t.Gate.Holds(ctx, s.Instance.Name)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "check for a disruption slot of the node", err)
	}
	if held && cause == v1alpha1.CauseRepair && t.isPastDeadline(s, node) {
		s.Instance.Status.DisruptionPending = false
		return nil
	}
	if !held {
		if o := t.Changes.AwaitRetry(s, node, cause); o != nil {
			return o
		}
	}
	decision, err := t.Gate.Acquire(ctx, disruptionpolicy.Request{
		Instance: s.Instance.Name, UID: s.Instance.UID, Cause: cause, Version: t.Version,
		Configuration: t.Specs.ConfigurationDigest(s.Cluster), HostChanged: !s.IsHostUnchanged(),
	})
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "acquire a disruption slot for the node", err)
	}
	if decision.Allowed {
		s.Instance.Status.DisruptionPending = false
		return nil
	}
	if o := t.UncordonAndRelease(ctx, s, node); o != nil {
		return o
	}
	next := "The operator changes the node when the WindowsDisruptionPolicy allows it."
	if why := s.Session.NoRollbackReason; why != "" {
		next += " If that fails, the host cannot be rolled back: " + sanitize.Sentence(why)
	}
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: decision.Reason, Outcome: result.Wait, RefusedByGate: true,
		RequeueAfter: slotRetryDelay(decision),
		Message:      decision.Message, NextAction: next,
	}
}

// slotRetryDelay returns the delay before a refused instance requests the slot again. If only time ends the
// refusal, that time is known in advance. Other nodes may return to service long before their deadline, and
// not every waiting instance is requeued then.
func slotRetryDelay(refused disruptionpolicy.Decision) time.Duration {
	if refused.IsIndependentOfNodes() {
		return cmp.Or(refused.After, gateIdleInterval)
	}
	return min(cmp.Or(refused.After, gatePollInterval), gatePollInterval)
}

// isPastDeadline reports whether a node has been down for so long that the change behind its slot counts as
// failed. The operator continues with the node, but without the slot.
func (t *Disruptor) isPastDeadline(s *scope.Scope, node *corev1.Node) bool {
	now := t.Clock.Now()
	return !nodeidentity.IsReady(node) && now.Sub(nodes.NotReadySince(s.Instance, now)) >= s.Settings.FailureDeadline
}

// WarnNoRollback reports once, with the reason, that the host cannot be rolled back if the change fails. An empty
// reason means that a rollback is possible.
func (t *Disruptor) WarnNoRollback(s *scope.Scope, why string) {
	if why != "" && why != s.Session.NoRollbackReason {
		t.Events.Emit(status.RollbackUnavailableEvent(s.Instance, why))
	}
	s.Session.NoRollbackReason = why
}

// SlotPolicy defines the effect of a phase's results on the disruption slot of an instance.
type SlotPolicy struct {
	// ContactsHost is true when a result of the phase means that the host did not respond.
	ContactsHost bool
	// YieldsSlot is true when an instance that is being removed releases its slot at a result of the
	// phase.
	YieldsSlot bool
}

// ReleaseUnusedSlot releases the slot of an instance that cannot use it: the instance was paused, the key is missing,
// or the host does not respond. If the host is unchanged, the node returns to service meanwhile.
func (t *Disruptor) ReleaseUnusedSlot(ctx context.Context, s *scope.Scope, met SlotPolicy, o *result.Result) *result.Result {
	if o.HoldsSlot || o.Outcome == result.Done || s.SkipStatusWrite {
		return o
	}
	if met.ContactsHost {
		s.Session.Unresponsive = true
	}
	switch s.Instance.Spec.DesiredState {
	case v1alpha1.DesiredStateNode:
	case v1alpha1.DesiredStateRemoved:
		if !met.YieldsSlot {
			return o // a node that leaves the cluster stays cordoned
		}
	default:
		return o
	}
	held, err := t.Gate.Holds(ctx, s.Instance.Name)
	if err != nil || !held {
		return o
	}
	node, err := t.Nodes.Get(ctx, s.Instance)
	if err != nil || !IsUndisrupted(s, node) {
		return o // after an error, the next reconcile retries
	}
	if failed := t.UncordonAndRelease(ctx, s, node); failed != nil {
		failed.Phase = o.Phase
		return failed
	}
	return o
}

// IsUndisrupted reports whether no change that needs a drained node was made to the host since the node was cordoned.
func IsUndisrupted(s *scope.Scope, node *corev1.Node) bool {
	return s.IsHostUnchanged() || node != nil && nodes.IsDraining(node)
}

// UncordonAndRelease uncordons a cordoned node with an unchanged host, and releases its disruption slot.
func (t *Disruptor) UncordonAndRelease(ctx context.Context, s *scope.Scope, node *corev1.Node) *result.Result {
	if !IsUndisrupted(s, node) {
		return nil
	}
	if node != nil && nodes.IsCordoned(node) {
		if err := t.Nodes.Uncordon(ctx, s.Instance); err != nil {
			return result.FromAPIError(v1alpha1.ConditionUpToDate, "uncordon the Node", err)
		}
	}
	s.RequestSlotRelease()
	return nil
}
