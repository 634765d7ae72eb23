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

// After a boot the HNS network is missing until recreated by hybrid-overlay-node, while the configuration of
// the CNI plugin still exists. Therefore Windows starts only services without pods: containerd, the exporter,
// csi-proxy, the agent. The agent's service starts the rest with the regular plan: it removes the
// configuration, starts the kubelet and hybrid-overlay-node, and writes the configuration once the network
// exists.

// bootTime is the period after a boot in which Windows starts services: a stopped service is not drift yet. The
// agent starts the rest when its required services run, or when the operator has applied the spec since the
// boot.
type bootTime struct {
	host  host.Host
	clock clock.PassiveClock

	boot     time.Time
	until    time.Time
	booted   bool // until counts from the boot, not from the start of the service
	waitDone bool // the agent need not wait any longer
	over     bool // Windows has started its services
	started  bool // the node was started since the boot
}

// newBoot returns the bootTime of a service that starts now.
func newBoot(h host.Host, clock clock.PassiveClock) *bootTime {
	return &bootTime{host: h, clock: clock, until: clock.Now().Add(timeouts.BootGracePeriod)}
}

// NodeIsUp records that the node was started.
func (b *bootTime) NodeIsUp() { b.started = true }

// ShouldWait reports whether the agent must wait for Windows. Up is true if all awaited services run, all if all
// services of the node run.
func (b *bootTime) ShouldWait(ctx context.Context, up, all bool) bool {
	if b.over {
		return false
	}
	if !b.booted {
		if info, err := b.host.System.Info(ctx); err == nil {
			b.boot, b.booted = info.BootTime, true
			// The clock may have been set since the boot, or may be set later: only the time left now counts.
			now := b.clock.Now()
			b.until = now.Add(min(info.BootTime.Add(timeouts.BootGracePeriod).Sub(now), timeouts.BootGracePeriod))
			b.started = b.until.Before(now) || b.isSpecApplied(ctx)
		}
	}
	b.over = all || b.isSpecApplied(ctx) || !b.clock.Now().Before(b.until)
	b.waitDone = b.waitDone || up || b.over
	return !b.waitDone
}

// WithoutWindows removes the start steps that Windows performs for now. Restarts of services stopped by the
// steps remain.
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

func (b *bootTime) isSpecApplied(ctx context.Context) bool {
	file, err := b.host.Files.Stat(ctx, nodespec.AppliedPath)
	return err == nil && b.booted && file.Modified.After(b.boot)
}

// IsStarting reports whether the node's start after a boot may still be in progress.
func (b *bootTime) IsStarting() bool {
	return !b.started && b.clock.Now().Before(b.until.Add(timeouts.NetworkTimeout))
}

// IsStart reports whether a step belongs to the node's start after a boot and is therefore not a repair.
func (b *bootTime) IsStart(step plan.Step, spec *nodespec.NodeSpec) bool {
	if spec == nil || !b.IsStarting() {
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

// isUp reports whether the services awaited after a boot run, all of which Windows starts: the dependencies of
// the services started by the agent, or all automatic services if the agent starts none.
func isUp(spec nodespec.NodeSpec, present []host.Service) bool {
	for _, name := range awaitedServices(spec) {
		if !slices.ContainsFunc(present, func(s host.Service) bool { return strings.EqualFold(s.Name, name) && s.State == host.ServiceRunning }) {
			return false
		}
	}
	return true
}

func awaitedServices(spec nodespec.NodeSpec) []string {
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
