package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// awaitedNetwork handles the absence of the HNS network. hybrid-overlay-node creates the network without a
// notification. Therefore the service polls, with one request to the Host Networking Service.
type awaitedNetwork struct {
	host  host.Networks
	clock clock.WithTicker

	awaited *plan.AwaitNetwork // nil if the network exists or is not desired
	since   time.Time
	silent  bool      // the Host Networking Service did not respond: no request before the next comparison
	began   time.Time // time of the last start or stop of hybrid-overlay-node by the service
}

// newNetwork returns the awaitedNetwork of a host.
func newNetwork(of host.Networks, clock clock.WithTicker) *awaitedNetwork {
	return &awaitedNetwork{host: of, clock: clock}
}

// IsAwaited reports whether the agent waits for the network.
func (n *awaitedNetwork) IsAwaited() bool { return n.awaited != nil }

// AllowRequests allows new requests to a Host Networking Service that did not respond.
func (n *awaitedNetwork) AllowRequests() { n.silent = false }

// DeferSteps records the network that a plan waits for, and returns the steps to run now. While the kubelet runs,
// hybrid-overlay-node may just be recreating the network: a short absence is ignored so that the node stays Ready.
func (n *awaitedNetwork) DeferSteps(await *plan.AwaitNetwork, steps []plan.Step, spec nodespec.NodeSpec) []plan.Step {
	now := n.clock.Now()
	if await == nil || n.awaited == nil {
		n.since = now
	}
	n.awaited = await
	if await == nil || now.Sub(n.since) >= timeouts.NetworkGracePeriod || slices.ContainsFunc(steps, isKubeletStart) {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(step plan.Step) bool { return plan.IsForNetwork(step, spec) })
}

func isKubeletStart(step plan.Step) bool {
	start, ok := step.Operation.(plan.StartService)
	return ok && strings.EqualFold(start.Service, nodespec.ServiceKubelet)
}

// HasArrived reports whether the awaited network exists now.
func (n *awaitedNetwork) HasArrived(ctx context.Context) bool {
	if n.awaited == nil || n.silent {
		return false
	}
	var networks []host.HNSNetwork
	question := timeouts.Operation{
		Timeout: timeouts.CheckTimeout, What: "listing the networks of the Host Networking Service", Progress: func(string, ...any) {},
	}
	err := question.Run(ctx, n.clock, func(ctx context.Context) (err error) {
		networks, err = n.host.Networks(ctx)
		return err
	})
	var late *agentapi.Failure
	n.silent = errors.As(err, &late)
	return err == nil && slices.ContainsFunc(networks, func(network host.HNSNetwork) bool {
		return strings.EqualFold(network.Name, n.awaited.Network) && network.Subnet == n.awaited.Subnet
	})
}

// RestartSteps returns the steps that restart a running hybrid-overlay-node if the network stays missing:
// hybrid-overlay-node creates the network only at its start.
func (n *awaitedNetwork) RestartSteps(steps []plan.Step, facts plan.Facts) []plan.Step {
	since := n.since
	if n.began.After(since) {
		since = n.began
	}
	running := facts.Services[nodespec.ServiceHybridOverlay].State == host.ServiceRunning
	if n.awaited == nil || !running || slices.ContainsFunc(steps, isOverlayStep) ||
		n.clock.Since(since) < timeouts.NetworkTimeout {
		return nil
	}
	reason := fmt.Sprintf("HNS network %s has been missing for %s, and hybrid-overlay-node creates it only at its start", n.awaited.Network, timeouts.NetworkTimeout)
	var again []plan.Step
	for _, operation := range []plan.Operation{
		plan.StopService{Service: nodespec.ServiceHybridOverlay}, plan.StartService{Service: nodespec.ServiceHybridOverlay},
	} {
		again = append(again, plan.Step{Name: plan.Name(operation), Operation: operation, Reason: reason, DisruptsPods: true})
	}
	return again
}

// RecordStep records the time of a start or stop of hybrid-overlay-node, successful or not.
func (n *awaitedNetwork) RecordStep(step plan.Step) {
	if isOverlayStep(step) {
		n.began = n.clock.Now()
	}
}

func isOverlayStep(step plan.Step) bool {
	switch o := step.Operation.(type) {
	case plan.StartService:
		return strings.EqualFold(o.Service, nodespec.ServiceHybridOverlay)
	case plan.StopService:
		return strings.EqualFold(o.Service, nodespec.ServiceHybridOverlay)
	}
	return false
}

// DescribeMissing describes a missing network for the report.
func (n *awaitedNetwork) DescribeMissing() string {
	if n.awaited == nil || n.clock.Since(n.since) < timeouts.NetworkTimeout {
		return ""
	}
	return "HNS network " + n.awaited.Network + " is missing, so the node cannot run pods: hybrid-overlay-node has not created the network; hybrid-overlay-node needs the " +
		"API server, see " + nodespec.LogDirectory(nodespec.ServiceHybridOverlay)
}
