// Package removal restores a host and removes the node from the cluster. The agent reads the original state from
// the ledger on the host.
package removal

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// Removal restores hosts.
type Removal struct {
	Client    client.Client
	Nodes     nodes.Nodes
	Disruptor *drain.Disruptor
	Rollback  *rollback.Rollback
	Adoption  *adoption.Adoption
	Signer    identity.Signer
	Events    status.Recorder
	Clock     clock.PassiveClock
	// Connect connects to the host, and Inspect makes the agent report the host facts.
	Connect, Inspect func(context.Context, *scope.Scope) *result.Result
	Namespace        string // of the instances
}

// NeedsHost reports whether the host must be reached to restore it.
func NeedsHost(s *scope.Scope) bool { return !hasNothingToRestore(s) && !isForgetRequested(s) }

// hasNothingToRestore reports whether there is nothing to restore: the host was never changed, was restored already, or
// belongs to another instance now. A host counts as changed from the moment that its host key is pinned.
func hasNothingToRestore(s *scope.Scope) bool {
	return s.HostTransferred || s.Instance.Status.HostKey == nil || s.Host.Restored
}

// isForgetRequested reports whether an administrator has declared that the host no longer exists.
func isForgetRequested(s *scope.Scope) bool {
	return s.Instance.Annotations[v1alpha1.AnnotationForgetHost] == "true"
}

// forgetHint returns the command for removing a node without its host.
func (r *Removal) forgetHint(s *scope.Scope) string {
	return fmt.Sprintf("If the host no longer exists: kubectl annotate windowsinstance %s -n %s %s=true", s.Instance.Name,
		r.Namespace, v1alpha1.AnnotationForgetHost)
}

// ConnectHost connects to the host. A host keeps the disruption slot during a restart or a restore, limited by the
// disruption policy. For a host that no longer exists, the result contains the next steps.
func (r *Removal) ConnectHost(ctx context.Context, s *scope.Scope) *result.Result {
	if !NeedsHost(s) {
		return nil
	}
	o := r.Connect(ctx, s)
	if o == nil {
		return r.resumeDrain(ctx, s)
	}
	if o.HoldsSlot {
		return o
	}
	s.Session.Unresponsive = true
	if !s.IsChangeInProgress() {
		// An unreachable host may never return, and other nodes must not wait for it.
		s.RequestSlotRelease()
	}
	if o.Outcome.IsFailure() {
		if o.SSHKeyRejected {
			o.NextAction += " If the removed entry had a wrong user, add the entry again with the correct user, and remove it when the host is Reachable."
		}
		o.NextAction = fmt.Sprintf("%s The Node is kept until the host is restored. %s", o.NextAction, r.forgetHint(s))
	}
	return o
}

// resumeDrain acquires the disruption slot again after a host that had released the slot is reachable, and
// drains the pods that have arrived since.
func (r *Removal) resumeDrain(ctx context.Context, s *scope.Scope) *result.Result {
	if !s.Session.Unresponsive {
		return nil
	}
	s.Session.Unresponsive = false
	o := r.Drain(ctx, s)
	if o != nil && o.Outcome != result.Working {
		s.Host.Close()
	}
	return o
}

// RestoreHost makes the agent restore the host, including restarts, and deletes the agent.
func (r *Removal) RestoreHost(ctx context.Context, s *scope.Scope) *result.Result {
	if hasNothingToRestore(s) {
		return nil
	}
	if isForgetRequested(s) {
		r.Events.Emit(status.HostNotCleanedUpEvent(s.Instance))
		return nil
	}
	remains, pending, err := s.Host.FindRemains()
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionReady, err)
	}
	older, err := r.Adoption.MayHaveLegacyFiles(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	withAgent := remains.Changed || older
	if o := r.identifyHost(ctx, s, withAgent); o != nil {
		return o
	}
	if s.HostTransferred {
		s.Host.Close()
		return nil
	}
	line, pending, err := s.Host.Restore(withAgent, func() *result.Result {
		// From here on, the host differs from the spec, even if the entry returns.
		s.Instance.Status.SpecDigest = ""
		return nil
	})
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionReady, err)
	}
	s.Host.ForgetState() // no later apply or check may be skipped, even if the entry returns
	switch {
	case line.Type == agentapi.TypeRebooting:
		r.Events.Emit(status.HostRebootingEvent(s.Instance))
		return s.BeginRestart()
	case withAgent && !line.Result.Removed:
		return &result.Result{
			Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRemoving,
			Message: "Some of the host's original settings are not restored yet.", NextAction: "The operator retries the removal.",
		}
	case withAgent && len(line.Result.NotRestored) > 0:
		r.Events.Emit(status.HostNotRestoredEvent(s.Instance, line.Result.NotRestored))
	}
	s.Host.Restored = true
	s.Host.Close()
	r.Events.Emit(status.HostRestoredEvent(s.Instance))
	r.Events.Emit(status.LegacyTeardownEvent(s.Instance))
	return nil
}

// identifyHost stops at a host that is not the host of the instance, or that belongs to another instance.
func (r *Removal) identifyHost(ctx context.Context, s *scope.Scope, withAgent bool) *result.Result {
	if !withAgent {
		if o := r.identifyUnconfigured(ctx, s); o != nil {
			return o
		}
		return r.findOrphanedNode(ctx, s)
	}
	if o := r.Inspect(ctx, s); o != nil {
		return o
	}
	// If the instance was removed before its host was identified, the host is identified only now.
	if o := r.TransferSharedHost(ctx, s); o != nil || s.HostTransferred {
		return o
	}
	if o := r.checkHostMismatch(ctx, s); o != nil {
		return o
	}
	return r.findOrphanedNode(ctx, s)
}
