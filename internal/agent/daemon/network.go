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
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// awaitedNetwork is what the service does while the HNS network is not there. hybrid-overlay-node makes it, and nobody
// tells when: so the service looks for it, which costs one question to the Host Networking Service.
type awaitedNetwork struct {
	host  host.Networks
	clock clock.WithTicker

	awaited *plan.AwaitNetwork // nil while the network is there, or is not to be
	since   time.Time
	silent  bool      // the Host Networking Service did not answer: it is not asked before the next comparison
	began   time.Time // when the service last had hybrid-overlay-node started or stopped
}

// newNetwork returns what waits for the network of a host.
func newNetwork(of host.Networks, clock clock.WithTicker) *awaitedNetwork {
	return &awaitedNetwork{host: of, clock: clock}
}

// Awaited reports whether the network is waited for.
func (n *awaitedNetwork) Awaited() bool { return n.awaited != nil }

// AskAgain has a Host Networking Service that did not answer be asked again.
func (n *awaitedNetwork) AskAgain() { n.silent = false }

// Heed takes over what a plan waits for, and returns the steps to be done now. Where the kubelet runs, the network may
// only be in the making again: its absence counts when it lasts, so that the node is not made NotReady and Ready for
// nothing.
func (n *awaitedNetwork) Heed(await *plan.AwaitNetwork, steps []plan.Step, spec nodespec.NodeSpec) []plan.Step {
	now := n.clock.Now()
	if await == nil || n.awaited == nil {
		n.since = now
	}
	n.awaited = await
	if await == nil || now.Sub(n.since) >= timeouts.NetworkGrace || slices.ContainsFunc(steps, startsKubelet) {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(step plan.Step) bool { return plan.IsForNetwork(step, spec) })
}

func startsKubelet(step plan.Step) bool {
	start, ok := step.Operation.(plan.StartService)
	return ok && strings.EqualFold(start.Service, nodespec.ServiceKubelet)
}

// Arrived reports whether the network is there that was waited for.
func (n *awaitedNetwork) Arrived(ctx context.Context) bool {
	if n.awaited == nil || n.silent {
		return false
	}
	var networks []host.HNSNetwork
	question := timeouts.Work{
		Limit: timeouts.LimitCheck, What: "the Host Networking Service lists its networks", Tell: func(string, ...any) {},
	}
	err := question.Run(ctx, n.clock, func(ctx context.Context) (err error) {
		networks, err = n.host.Networks(ctx)
		return err
	})
	var late *verb.Failure
	n.silent = errors.As(err, &late)
	return err == nil && slices.ContainsFunc(networks, func(network host.HNSNetwork) bool {
		return strings.EqualFold(network.Name, n.awaited.Network) && network.Subnet == n.awaited.Subnet
	})
}

// Again returns the steps that start hybrid-overlay-node anew when it runs and the network does not come: it makes the
// network only at its start.
func (n *awaitedNetwork) Again(steps []plan.Step, facts plan.Facts) []plan.Step {
	since := n.since
	if n.began.After(since) {
		since = n.began
	}
	running := facts.Services[nodespec.ServiceHybridOverlay].State == host.ServiceRunning
	if n.awaited == nil || !running || slices.ContainsFunc(steps, ofOverlay) ||
		n.clock.Since(since) < timeouts.LimitNetwork {
		return nil
	}
	reason := fmt.Sprintf("HNS network %s has not been there for %s, and hybrid-overlay-node makes it at its start", n.awaited.Network, timeouts.LimitNetwork)
	var again []plan.Step
	for _, operation := range []plan.Operation{
		plan.StopService{Service: nodespec.ServiceHybridOverlay}, plan.StartService{Service: nodespec.ServiceHybridOverlay},
	} {
		again = append(again, plan.Step{Name: plan.Name(operation), Operation: operation, Reason: reason, DisturbsPods: true})
	}
	return again
}

// Notice takes down when hybrid-overlay-node is started or stopped, whatever comes of it.
func (n *awaitedNetwork) Notice(step plan.Step) {
	if ofOverlay(step) {
		n.began = n.clock.Now()
	}
}

func ofOverlay(step plan.Step) bool {
	switch o := step.Operation.(type) {
	case plan.StartService:
		return strings.EqualFold(o.Service, nodespec.ServiceHybridOverlay)
	case plan.StopService:
		return strings.EqualFold(o.Service, nodespec.ServiceHybridOverlay)
	}
	return false
}

// Left describes a network that does not come, for the report.
func (n *awaitedNetwork) Left() string {
	if n.awaited == nil || n.clock.Since(n.since) < timeouts.LimitNetwork {
		return ""
	}
	return "the HNS network " + n.awaited.Network + ", which hybrid-overlay-node has not made: this node takes no pods; hybrid-overlay-node needs the " +
		"API server, look at " + nodespec.LogDirectory(nodespec.ServiceHybridOverlay)
}
