package instance

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// networkPhase is the phase that sets up the pod network.
type networkPhase struct {
	nodes    nodes.Nodes
	specs    desired.SpecBuilder
	delivery delivery
	clock    clock.PassiveClock
}

// podSubnetTimeout is the maximum time that the cluster network may take to assign a pod subnet before the wait counts
// as a failure.
const podSubnetTimeout = 5 * time.Minute

// reconcile waits for the pod subnet that the hybrid overlay assigns to the Node, and has the agent set up the
// dependent configuration.
func (p networkPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionNetworkReady, "read the Node", err)
	}
	spec, o := p.specs.BuildForNode(s, node)
	if o != nil {
		return o
	}
	if spec.Network.PodSubnet == "" {
		return s.WithTimeout(p.clock.Now(), "a pod subnet", podSubnetTimeout, &result.Result{
			Condition: v1alpha1.ConditionNetworkReady, Reason: v1alpha1.ReasonPodSubnetNotAssigned,
			Outcome: result.ChangeFailed, StatusDelay: p.nodes.NodeWaitStatusDelay,
			Message:    "Node " + s.NodeName() + " has no annotation " + v1alpha1.AnnotationPodSubnet + " yet.",
			NextAction: "The operator waits for the hybrid overlay of OVN-Kubernetes, which assigns the subnet. If this takes long, check the ovnkube-control-plane pods" + maxNodesHint(s.Cluster.Network.HybridSubnets),
		})
	}
	if o := p.delivery.apply(ctx, s, spec); o != nil {
		return o
	}
	if needs := s.Host.RemainingPlan.Needs; len(needs) > 0 {
		return &result.Result{
			Condition: v1alpha1.ConditionNetworkReady, Reason: v1alpha1.ReasonInProgress, HoldsSlot: true,
			Message:    "The pod network is not configured yet: " + string(needs[0]) + " is missing.",
			NextAction: "The operator retries.",
		}
	}
	s.MarkTrue(v1alpha1.ConditionNetworkReady, "The pod network "+spec.Network.PodSubnet+" is configured.")
	return nil
}

// maxNodesHint ends a sentence with the maximum number of nodes with a pod subnet, because the hybrid overlay does not
// report the exhaustion of its subnets.
func maxNodesHint(subnets int) string {
	if subnets == 0 {
		return " and hybridClusterNetwork."
	}
	return fmt.Sprintf(". The subnets of hybridClusterNetwork limit the number of Windows nodes to %d.", subnets)
}
