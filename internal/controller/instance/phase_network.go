package instance

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// subnetLimit is how long the cluster's network may take to assign a pod subnet before it counts as a failure.
const subnetLimit = 5 * time.Minute

// setUpNetwork waits for the pod subnet that the hybrid overlay assigns to the Node, and has the agent set up what needs it.
func (r *Reconciler) setUpNetwork(ctx context.Context, s *scope) *obstacle {
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	if spec.Network.PodSubnet == "" {
		return s.awaited("a pod subnet", subnetLimit, &obstacle{
			condition: v1alpha1.ConditionNetworkReady, reason: v1alpha1.ReasonPodSubnetNotAssigned, outcome: changeFailed,
			message: "Node " + s.nodeName() + " has no annotation " + v1alpha1.AnnotationPodSubnet + " yet.",
			next:    "OVN-Kubernetes' hybrid overlay assigns it. If this lasts, look at the ovnkube-control-plane pods and at hybridClusterNetwork.",
		})
	}
	if o := s.apply(ctx, spec); o != nil {
		return o
	}
	if needs := s.session.left.Needs; len(needs) > 0 {
		return &obstacle{
			condition: v1alpha1.ConditionNetworkReady, reason: v1alpha1.ReasonInProgress, keepsTurn: true,
			message: "The agent still needs " + string(needs[0]) + " to set up the network.",
			next:    "The operator looks again.",
		}
	}
	s.pass(v1alpha1.ConditionNetworkReady, "The pod network "+spec.Network.PodSubnet+" is set up.")
	return nil
}

// awaited turns an obstacle into a wait that becomes a failure after the limit.
func (s *scope) awaited(what string, limit time.Duration, o *obstacle) *obstacle {
	since := s.session.waitingSince(what, s.Clock.Now())
	rest := limit - s.Clock.Since(since)
	if rest > 0 {
		o.outcome, o.after = wait, rest
		return o
	}
	o.message += " This has lasted longer than " + limit.String() + "."
	return o
}
