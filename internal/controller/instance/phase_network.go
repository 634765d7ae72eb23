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

// network is the phase that sets up the pod network.
type network struct {
	nodes    nodes.Nodes
	specs    desired.Specs
	delivery delivery
	clock    clock.PassiveClock
}

// subnetLimit is the maximum time that the cluster network may take to assign a pod subnet before the wait counts
// as a failure.
const subnetLimit = 5 * time.Minute

// run waits for the pod subnet that the hybrid overlay assigns to the Node, and has the agent set up the
// dependent configuration.
func (p network) run(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionNetworkReady, "read the Node", err)
	}
	spec, o := p.specs.With(s, node)
	if o != nil {
		return o
	}
	if spec.Network.PodSubnet == "" {
		return s.Awaited(p.clock.Now(), "a pod subnet", subnetLimit, &result.Result{
			Condition: v1alpha1.ConditionNetworkReady, Reason: v1alpha1.ReasonPodSubnetNotAssigned,
			Outcome: result.ChangeFailed, Quiet: p.nodes.Quiet,
			Message: "Node " + s.NodeName() + " has no annotation " + v1alpha1.AnnotationPodSubnet + " yet.",
			Next:    "OVN-Kubernetes' hybrid overlay assigns it. If this lasts, look at the ovnkube-control-plane pods" + room(s.Cluster.Network.HybridSubnets),
		})
	}
	if o := p.delivery.apply(ctx, s, spec); o != nil {
		return o
	}
	if needs := s.Host.Left.Needs; len(needs) > 0 {
		return &result.Result{
			Condition: v1alpha1.ConditionNetworkReady, Reason: v1alpha1.ReasonInProgress, KeepsTurn: true,
			Message: "The agent still needs " + string(needs[0]) + " to set up the network.",
			Next:    "The operator retries.",
		}
	}
	s.Pass(v1alpha1.ConditionNetworkReady, "The pod network "+spec.Network.PodSubnet+" is set up.")
	return nil
}

// room ends a sentence with the maximum number of nodes with a pod subnet, because the hybrid overlay does not
// report the exhaustion of its subnets.
func room(subnets int) string {
	if subnets == 0 {
		return " and at hybridClusterNetwork."
	}
	return fmt.Sprintf(". The subnets of hybridClusterNetwork limit the number of Windows nodes to %d.", subnets)
}
