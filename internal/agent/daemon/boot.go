package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// After a boot the HNS network is gone until hybrid-overlay-node has made it anew, and the CNI plugin's configuration
// still lies there. So Windows starts only what has no pods (containerd, the exporter, csi-proxy, the agent), and the
// agent's service the rest, by the same plan as ever: it takes the configuration away, starts the kubelet and
// hybrid-overlay-node, and writes the configuration when the network is there.

// bootTime is the time after a boot in which Windows itself starts services: one that does not run yet is no drift. The
// agent begins with the rest when those run that it depends on, or when the operator has applied the spec since the
// boot.
type bootTime struct {
	host  host.Host
	clock clock.PassiveClock

	boot    time.Time
	until   time.Time
	booted  bool // until counts from the boot and not from the start of the service
	settled bool // the agent need not wait any more
	over    bool // Windows has started what it starts
	started bool // the node was brought up since the boot
}

// newBoot returns the time after a boot of a service that begins now.
func newBoot(h host.Host, clock clock.PassiveClock) *bootTime {
	return &bootTime{host: h, clock: clock, until: clock.Now().Add(timeouts.BootGrace)}
}

// NodeIsUp takes down that the node was brought up.
func (b *bootTime) NodeIsUp() { b.started = true }

// Waits reports whether the agent must wait for Windows. up says whether those run that are waited for, and all whether
// all of the node do.
func (b *bootTime) Waits(ctx context.Context, up, all bool) bool {
	if b.over {
		return false
	}
	if !b.booted {
		if info, err := b.host.System.Info(ctx); err == nil {
			b.boot, b.booted = info.BootTime, true
			// The clock may have been set since the boot, or be set from now on: only what was left by now counts.
			now := b.clock.Now()
			b.until = now.Add(min(info.BootTime.Add(timeouts.BootGrace).Sub(now), timeouts.BootGrace))
			b.started = b.until.Before(now) || b.applied(ctx)
		}
	}
	b.over = all || b.applied(ctx) || !b.clock.Now().Before(b.until)
	b.settled = b.settled || up || b.over
	return !b.settled
}

// WithoutWindows returns the steps but for the starts that are left to Windows for now. What the steps stop they start.
func (b *bootTime) WithoutWindows(steps []plan.Step, spec nodespec.NodeSpec) []plan.Step {
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

func (b *bootTime) applied(ctx context.Context) bool {
	file, err := b.host.Files.Stat(ctx, nodespec.AppliedPath)
	return err == nil && b.booted && file.Modified.After(b.boot)
}

// Lasts reports whether the node's start after a boot may still be under way.
func (b *bootTime) Lasts() bool {
	return !b.started && b.clock.Now().Before(b.until.Add(timeouts.LimitNetwork))
}

// IsStart reports whether a step is a part of the node's start after a boot and no repair: nothing was wrong.
func (b *bootTime) IsStart(step plan.Step, spec *nodespec.NodeSpec) bool {
	if spec == nil || !b.Lasts() {
		return false
	}
	switch o := step.Operation.(type) {
	case plan.AddRoute, plan.CreateEndpoint, plan.AttachEndpoint, plan.DisableDNSRegistration:
		return true
	case plan.StartService:
		return o.Service == nodespec.ServiceHNS || startType(*spec, o.Service) == host.StartManual
	case plan.WriteFile:
		return slices.Contains(o.File.Needs, nodespec.NeedSourceVIP) || plan.IsForNetwork(step, *spec)
	}
	return plan.IsForNetwork(step, *spec)
}

// isUp reports whether those of a spec's services run that Windows starts by itself and that the agent waits for after a
// boot: what others depend on that the agent starts, or all where it starts none.
func isUp(spec nodespec.NodeSpec, present []host.Service) bool {
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
