package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// After a boot the HNS network is gone until hybrid-overlay-node has made it anew, and the CNI plugin's configuration still lies there. So
// Windows starts only what has no pods (containerd, the exporter, csi-proxy, the agent), and the agent's service the rest, by the same plan
// as ever: it takes the configuration away, starts the kubelet and hybrid-overlay-node, and writes the configuration when the network is there.

// bootWait is the time after a boot in which Windows itself starts services: one that does not run yet is no drift. The agent begins with the
// rest when those run that it depends on, or when the operator has applied the spec since the boot.
type bootWait struct {
	*agent
	boot    time.Time
	until   time.Time
	booted  bool // until counts from the boot and not from the start of the service
	settled bool // the agent need not wait any more
	over    bool // Windows has started what it starts
	started bool // the node was brought up since the boot
}

// waits reports whether the agent must wait for Windows. up says whether those run that are waited for, and all whether all of the node do.
func (b *bootWait) waits(ctx context.Context, up, all bool) bool {
	if b.over {
		return false
	}
	if !b.booted {
		if info, err := b.host.System.Info(ctx); err == nil {
			b.boot, b.booted = info.BootTime, true
			// The clock may have been set since the boot, or be set from now on: only what was left by now counts.
			now := b.clock.Now()
			b.until = now.Add(min(info.BootTime.Add(BootGrace).Sub(now), BootGrace))
			b.started = b.until.Before(now) || b.applied(ctx)
		}
	}
	b.over = all || b.applied(ctx) || !b.clock.Now().Before(b.until)
	b.settled = b.settled || up || b.over
	return !b.settled
}

// withoutWindows are the steps but for the starts that are left to Windows for now. What the steps stop they start.
func (b *bootWait) withoutWindows(steps []plan.Step, spec nodespec.NodeSpec) []plan.Step {
	if b.over {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(step plan.Step) bool {
		start, ok := step.Operation.(plan.StartService)
		stop := plan.Name(plan.StopService(start))
		return ok && startType(spec, start.Service) == host.StartAutomatic && !slices.ContainsFunc(steps, func(s plan.Step) bool { return s.Name == stop })
	})
}

func startType(spec nodespec.NodeSpec, name string) host.StartType {
	for _, service := range spec.Services {
		if strings.EqualFold(service.Name, name) {
			return service.StartType
		}
	}
	return ""
}

func (b *bootWait) applied(ctx context.Context) bool {
	file, err := b.host.Files.Stat(ctx, nodespec.AppliedPath)
	return err == nil && b.booted && file.Modified.After(b.boot)
}

// lasts reports whether the node's start after a boot may still be under way.
func (b *bootWait) lasts() bool { return !b.started && b.clock.Now().Before(b.until.Add(LimitNetwork)) }

// starting reports whether a step is a part of the node's start after a boot and no repair: nothing was wrong.
func (b *bootWait) starting(step plan.Step, spec *nodespec.NodeSpec) bool {
	if spec == nil || !b.lasts() {
		return false
	}
	switch o := step.Operation.(type) {
	case plan.AddRoute, plan.CreateEndpoint:
		return true
	case plan.StartService:
		return startType(*spec, o.Service) == host.StartManual
	case plan.WriteFile:
		return slices.Contains(o.File.Needs, nodespec.NeedSourceVIP) || plan.IsForNetwork(step, *spec)
	}
	return plan.IsForNetwork(step, *spec)
}

// up reports whether those of a spec's services run that Windows starts by itself and that the agent waits for after a boot: what others depend
// on that the agent starts, or all where it starts none.
func up(spec nodespec.NodeSpec, present []host.Service) bool {
	for _, name := range awaited(spec) {
		if !slices.ContainsFunc(present, func(s host.Service) bool { return strings.EqualFold(s.Name, name) && s.State == host.ServiceRunning }) {
			return false
		}
	}
	return true
}

func awaited(spec nodespec.NodeSpec) []string {
	var automatic, needed []string
	manual := false
	for _, service := range spec.Services {
		switch {
		case service.StartType != host.StartAutomatic:
			manual = true
			needed = append(needed, service.Dependencies...)
		case !strings.EqualFold(service.Name, nodespec.ServiceAgent):
			automatic = append(automatic, service.Name)
		}
	}
	if !manual {
		return automatic
	}
	return slices.DeleteFunc(automatic, func(name string) bool {
		return !slices.ContainsFunc(needed, func(dependency string) bool { return strings.EqualFold(dependency, name) })
	})
}

// networkWait is what the service does while the HNS network is not there. hybrid-overlay-node makes it, and nobody tells when: so the service
// looks for it, which costs one question to the Host Networking Service.
type networkWait struct {
	*agent
	awaited *plan.AwaitNetwork // nil while the network is there, or is not to be
	since   time.Time
	silent  bool      // the Host Networking Service did not answer: it is not asked before the next comparison
	began   time.Time // when the service last had hybrid-overlay-node started or stopped
}

// heed takes over what a plan waits for, and returns the steps to be done now. Where the kubelet runs, the network may only be in the making
// again: its absence counts when it lasts, so that the node is not made NotReady and Ready for nothing.
func (n *networkWait) heed(await *plan.AwaitNetwork, steps []plan.Step, spec nodespec.NodeSpec) []plan.Step {
	now := n.clock.Now()
	if await == nil || n.awaited == nil {
		n.since = now
	}
	n.awaited = await
	if await == nil || now.Sub(n.since) >= NetworkGrace || slices.ContainsFunc(steps, startsKubelet) {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(step plan.Step) bool { return plan.IsForNetwork(step, spec) })
}

func startsKubelet(step plan.Step) bool {
	start, ok := step.Operation.(plan.StartService)
	return ok && strings.EqualFold(start.Service, nodespec.ServiceKubelet)
}

// arrived reports whether the network is there that was waited for.
func (n *networkWait) arrived(ctx context.Context) bool {
	if n.awaited == nil || n.silent {
		return false
	}
	var networks []host.HNSNetwork
	e := &executor{agent: n.agent}
	err := e.within(ctx, LimitCheck, "the Host Networking Service lists its networks", func(ctx context.Context) (err error) {
		networks, err = n.host.Networks.Networks(ctx)
		return err
	})
	var late *verb.Failure
	n.silent = errors.As(err, &late)
	return err == nil && slices.ContainsFunc(networks, func(network host.HNSNetwork) bool {
		return strings.EqualFold(network.Name, n.awaited.Network) && network.Subnet == n.awaited.Subnet
	})
}

// again are the steps that start hybrid-overlay-node anew when it runs and the network does not come: it makes the network only at its start.
func (n *networkWait) again(steps []plan.Step, facts plan.Facts) []plan.Step {
	since := n.since
	if n.began.After(since) {
		since = n.began
	}
	running := facts.Services[nodespec.ServiceHybridOverlay].State == host.ServiceRunning
	if n.awaited == nil || !running || slices.ContainsFunc(steps, ofOverlay) || n.clock.Since(since) < LimitNetwork {
		return nil
	}
	reason := fmt.Sprintf("HNS network %s has not been there for %s, and hybrid-overlay-node makes it at its start", n.awaited.Network, LimitNetwork)
	var again []plan.Step
	for _, operation := range []plan.Operation{
		plan.StopService{Service: nodespec.ServiceHybridOverlay}, plan.StartService{Service: nodespec.ServiceHybridOverlay},
	} {
		again = append(again, plan.Step{Name: plan.Name(operation), Operation: operation, Reason: reason, DisturbsPods: true})
	}
	return again
}

// notice takes down when hybrid-overlay-node is started or stopped, whatever comes of it.
func (n *networkWait) notice(step plan.Step) {
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

// left says what is to be told of a network that does not come.
func (n *networkWait) left() string {
	if n.awaited == nil || n.clock.Since(n.since) < LimitNetwork {
		return ""
	}
	return "the HNS network " + n.awaited.Network + ", which hybrid-overlay-node has not made: this node takes no pods; hybrid-overlay-node needs the " +
		"API server, look at " + nodespec.LogDirectory("hybrid-overlay-node")
}
