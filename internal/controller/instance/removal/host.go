// Package removal gives a host back and takes its node out of the cluster. The agent reads the host's former state from
// the ledger there.
package removal

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/certificates"
	"github.com/windows-machine-config/wmco/internal/controller/instance/delivery"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Removal gives hosts back.
type Removal struct {
	Client   client.Client
	Nodes    nodes.Nodes
	Link     *link.Link
	Turn     *turn.Turn
	Delivery *delivery.Delivery
	Rollback *rollback.Rollback
	Adoption *adoption.Adoption
	Signer   certificates.Signer
	Events   event.Recorder
	Clock    clock.PassiveClock
	// Forget drops what is held in memory for an instance that is gone.
	Forget    func(instance string)
	Namespace string // of the instances
}

// NeedsHost reports whether the host must be reached to give it back.
func NeedsHost(s *scope.Scope) bool { return !untouched(s) && !forgotten(s) }

// untouched reports whether there is nothing to give back: the host was never changed, which it is from the moment its
// host key is pinned, or it is another instance's now.
func untouched(s *scope.Scope) bool { return s.HandedOver || s.Instance.Status.HostKey == nil }

// forgotten reports whether an administrator has said that the host is gone for good.
func forgotten(s *scope.Scope) bool {
	return s.Instance.Annotations[v1alpha1.AnnotationForgetHost] == "true"
}

// forgetHint is how an administrator removes a node without its host.
func (r *Removal) forgetHint(s *scope.Scope) string {
	return fmt.Sprintf("If the host is gone for good: kubectl annotate windowsinstance %s -n %s %s=true", s.Instance.Name,
		r.Namespace, v1alpha1.AnnotationForgetHost)
}

// Reach connects to the host. A host that restarts keeps its disruption slot, and so does one that is being given back:
// the disruption policy limits how long. For a host that is gone, the obstacle says what to do.
func (r *Removal) Reach(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if !NeedsHost(s) {
		return nil
	}
	o := r.Link.Reach(ctx, s)
	if o == nil {
		return r.resumeDrain(ctx, s)
	}
	if o.KeepsTurn {
		return o
	}
	s.Session.Unanswered = true
	if !s.MidChange() {
		// A host that is away may be so forever, and others must not wait for it.
		if held := r.Turn.Leave(ctx, s); held != nil {
			return held
		}
	}
	if o.Outcome.IsFailure() {
		if o.KeyRefused {
			o.Next += " If the removed entry had a wrong user, add it again with the right one, and remove it when the host is Reachable."
		}
		o.Next = fmt.Sprintf("%s The node stays until the host was given back. %s", o.Next, r.forgetHint(s))
	}
	return o
}

// resumeDrain acquires the disruption slot again after a host that had released it has answered, and drains the node of
// pods that have come since.
func (r *Removal) resumeDrain(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if !s.Session.Unanswered {
		return nil
	}
	s.Session.Unanswered = false
	o := r.Drain(ctx, s)
	if o != nil {
		r.Link.Close(s)
	}
	return o
}

// GiveBack has the agent restore the host, restarts included, and deletes the agent.
func (r *Removal) GiveBack(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if untouched(s) {
		return nil
	}
	if forgotten(s) {
		r.Events.Emit(event.HostLeftBehind(s.Instance))
		return nil
	}
	dirty, err := r.changed(ctx, s)
	if err != nil {
		return r.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	older, err := r.Adoption.HoldsOlder(ctx, s)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if dirty || older {
		if o := r.removeWithAgent(ctx, s); o != nil {
			return o
		}
		if s.HandedOver {
			r.Link.Close(s)
			return nil
		}
	} else {
		if o := r.identifyUnconfigured(ctx, s); o != nil {
			return o
		}
		if o := r.reclaim(ctx, s); o != nil {
			return o
		}
	}
	if err := s.Connection.Remove(ctx, nodespec.AgentRoot, nodespec.LandingRoot); err != nil {
		return r.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	// The agent has left in it what was there before and nothing else. What that was, nobody can say once the ledger is
	// gone.
	if err := s.Connection.RemoveEmpty(ctx, nodespec.Root); err != nil {
		return r.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	r.Link.Close(s)
	r.Events.Emit(event.HostGivenBack(s.Instance))
	r.Events.Emit(event.LegacyTeardown(s.Instance))
	return nil
}

// changed reports whether the agent has left on the host what says how it was before.
func (r *Removal) changed(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, path := range []string{nodespec.LedgerPath, nodespec.FoundPath} {
		if there, err := s.Connection.Exists(ctx, path); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

func (r *Removal) removeWithAgent(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if o := r.readFacts(ctx, s); o != nil {
		return o
	}
	// An instance that went before it knew whose host it has learns it only now.
	if o := r.HandOver(ctx, s); o != nil || s.HandedOver {
		return o
	}
	if o := r.mismatch(ctx, s); o != nil {
		return o
	}
	if o := r.reclaim(ctx, s); o != nil {
		return o
	}
	// From here on the host is no longer what it was brought to, also when its entry comes back.
	if err := r.Delivery.ForgetDigest(ctx, s); err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "note that the host is being given back", err)
	}
	// So nothing that is remembered of it may let an apply or a check be left out.
	s.Session.ForgetState()
	line, err := r.Link.Run(ctx, s, verb.Remove)
	if err != nil {
		return r.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	if line.Type == verb.TypeRebooting {
		r.Events.Emit(event.HostRestarts(s.Instance))
		return r.Link.BeginRestart(s)
	}
	if !line.Result.Removed {
		return &obstacle.Obstacle{
			Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRemoving,
			Message: "The agent has not given back everything yet.", Next: "The operator asks it again.",
		}
	}
	if left := line.Result.NotRestored; len(left) > 0 {
		r.Events.Emit(event.HostNotRestored(s.Instance, left))
	}
	return nil
}
