package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// loseNetworks deletes the HNS networks: they do not survive a restart.
func (r *rig) loseNetworks() {
	r.Helper()
	for _, network := range r.Snapshot().Networks {
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, network.Name))
	}
}

func (r *rig) createNetwork() {
	r.Helper()
	r.must(r.CreateNetwork(host.HNSNetwork{Name: hnsNetwork, Type: "Overlay", Subnet: podSubnet}))
}

// rebootHost restarts the host and waits until the agent's service runs.
func (r *rig) rebootHost() {
	r.Helper()
	n, boot := r.countEntries("ready", nodespec.ServiceAgent), r.BootID()
	r.loseNetworks()
	r.must(r.Host().Power.Reboot(r.ctx, "test"))
	r.awaitBoot(boot)
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > n }))
}

func (r *rig) hasNetwork() bool { return r.HasNetwork(hnsNetwork) }

func (r *rig) isRunning(name string) bool {
	service, _ := r.Service(name)
	return service.State == host.ServiceRunning
}

// guardNetwork checks before each operation after the next boot that no kubelet runs while the plugin is configured
// without the network.
func (r *rig) guardNetwork() (stop func()) {
	var once sync.Once
	boot := r.BootID()
	return r.OnOperation(func(o fake.Operation) error {
		if r.BootID() != boot && r.isRunning("kubelet") && r.hasPaths(cniConfig) && !r.hasNetwork() {
			once.Do(func() { r.Errorf("before %s the kubelet runs, and %s is there without the network", o, cniConfig) })
		}
		return nil
	})
}

// advanceUntil advances the time of the agent's service poll by poll until a condition holds.
func (r *rig) advanceUntil(what string, is func() bool) {
	r.Helper()
	for range 8 {
		if is() {
			return
		}
		r.advanceTime(timeouts.DriftPollInterval)
	}
	r.Fatalf("not within %s: %s", 16*timeouts.DriftPollInterval, what)
}

//
func TestService_NoPodsBeforeNetworkAfterBoot(t *testing.T) {
	t.Parallel()
	t.Run("the node comes back by itself, and that is no event", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		n := r.journalLength()
		r.rebootHost()
		r.advanceUntil("the node is back", func() bool { return r.isRunning("kube-proxy") && r.hasPaths(cniConfig) })
		if got, want := r.startedServices(n), []string{"kubelet", "hybrid-overlay-node", "kube-proxy"}; !slices.Equal(namesFromLast(got, "kubelet"), want) {
			t.Errorf("started %q, want %q", got, want)
		}
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
		if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
			t.Errorf("routes %v", routes)
		}
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("needs %v, left to do: %s", p.Needs, formatSteps(p))
		}
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.advanceUntil("the kubelet is repaired", func() bool { return r.isRunning("kube-proxy") })
		if events := r.eventsByID(report.EventRepaired); len(events) != 1 {
			t.Errorf("a repair after the start is reported %d times", len(events))
		}
	})
	t.Run("while the API server is away the kubelet runs and takes none", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		away := make(chan struct{})
		r.away.Store(&away)
		r.rebootHost()
		r.advanceUntil("the kubelet runs", func() bool { return r.isRunning("hybrid-overlay-node") })
		n := r.journalLength()
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if r.hasPaths(cniConfig) || len(r.startedServices(n)) > 0 || len(r.Events()) > 0 {
			t.Errorf("%s is there: %t; started again: %v; events: %v", cniConfig, r.hasPaths(cniConfig), r.startedServices(n), r.Events())
		}
		r.advanceTime(timeouts.NetworkTimeout)
		if events := r.eventsByID(report.EventLeft); len(events) != 1 || !strings.Contains(events[0].Message, hnsNetwork) {
			t.Errorf("after %s: %+v", timeouts.NetworkTimeout, r.Events())
		}
		close(away)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.hasNetwork() }))
		r.advanceTime(timeouts.DriftPollInterval)
		if !r.hasPaths(cniConfig) || !r.isRunning("kube-proxy") {
			t.Errorf("%s is there: %t, kube-proxy runs: %t", cniConfig, r.hasPaths(cniConfig), r.isRunning("kube-proxy"))
		}
	})
	t.Run("a service that Windows is slow to start holds up nothing and is left to Windows for a while", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Drive().WriteFile(`C:\idle.exe`, programContent("idle.exe", "v1")))
		spec := r.fullSpec()
		spec.Services = append(spec.Services, nodespec.Service{ServiceConfig: host.ServiceConfig{
			Name: "exporter", CommandLine: `C:\idle.exe`, StartType: host.StartAutomatic, Description: nodespec.DescriptionPrefix + " exporter",
		}})
		r.mustApply(spec)
		restore := r.FailServiceStart("exporter", 1)
		r.rebootHost()
		restore()
		r.advanceUntil("the node is back", func() bool { return r.isRunning("kube-proxy") })
		if r.isRunning("exporter") || len(r.Events()) > 0 {
			t.Errorf("the service runs: %t; events %+v", r.isRunning("exporter"), r.Events())
		}
		r.advanceTime(timeouts.BootGracePeriod)
		r.advanceTime(timeouts.DriftCheckInterval)
		if events := r.eventsByID(report.EventRepaired); !r.isRunning("exporter") || len(events) != 1 {
			t.Errorf("the service runs: %t; events %+v", r.isRunning("exporter"), events)
		}
	})
	t.Run("a verb that comes before the service does the same", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		restore := r.FailServiceStart(nodespec.ServiceAgent, 1)
		boot := r.BootID()
		r.loseNetworks()
		r.must(r.Host().Power.Reboot(r.ctx, "test"))
		r.awaitBoot(boot)
		restore()
		steps := r.mustApply(r.fullSpec())
		remove, start := slices.Index(steps, "RemovePath "+cniConfig), slices.Index(steps, "StartService kubelet")
		await, write := slices.Index(steps, "AwaitNetwork "+hnsNetwork), slices.Index(steps, "WriteFile "+cniConfig)
		if remove < 0 || remove > start || start > await || await > write {
			t.Errorf("steps %q", steps)
		}
	})
}

// namesFromLast returns the names from the last occurrence of the given name on.
func namesFromLast(names []string, name string) []string {
	for i, each := range slices.Backward(names) {
		if each == name {
			return names[i:]
		}
	}
	return nil
}

//
func TestService_ContinuesAfterKillAtBoot(t *testing.T) {
	t.Parallel()
	for n := range killPoints(12) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newNodeRig(t)
			defer r.guardNetwork()()
			seen, at := 0, ""
			var lock sync.Mutex
			r.OnOperation(func(o fake.Operation) error {
				lock.Lock()
				defer lock.Unlock()
				if o.Process.Service != nodespec.ServiceAgent || !changing[o.Interface+"."+o.Method] || strings.HasPrefix(o.Target, nodespec.LogRoot) {
					return nil
				}
				if seen++; seen != n {
					return nil
				}
				at = o.String()
				o.Process.Kill()
				return errKilled
			})
			r.rebootHost()
			up := func() bool { return r.isRunning("kube-proxy") && r.hasPaths(cniConfig) }
			for range 12 {
				if !r.isRunning(nodespec.ServiceAgent) {
					r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent)) // as Windows does after a failure
				}
				if up() {
					break
				}
				r.pollOnce()
			}
			lock.Lock()
			t.Log("killed before " + at)
			lock.Unlock()
			if !up() {
				t.Fatalf("the node is not back: %s", formatSteps(r.runPlan(r.fullSpec())))
			}
			for range 2 {
				r.pollOnce()
			}
			if !r.isRunning(nodespec.ServiceAgent) {
				r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent))
			}
			r.mustApply(r.fullSpec())
			if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("needs %v, left to do: %s", p.Needs, formatSteps(p))
			}
		})
	}
}

// pollOnce lets the agent's service poll once, or end.
func (r *rig) pollOnce() {
	r.Helper()
	ended := func() bool { return !r.isRunning(nodespec.ServiceAgent) }
	idle := func(*fake.Machine) bool { return r.ticking.isIdle() || ended() }
	r.must(r.WaitFor(r.ctx, idle))
	if ended() {
		return
	}
	r.ticking.Step(timeouts.DriftPollInterval)
	r.must(r.WaitFor(r.ctx, idle))
}

//
func TestService_RecreatedNetworkCausesNoFlapping(t *testing.T) {
	t.Parallel()
	configs := func(r *rig) int {
		return r.countEntries(fake.KindWrite, cniConfig) + r.countEntries(fake.KindFile, cniConfig)
	}
	t.Run("away for some seconds: nothing is taken away, nothing restarts", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		n, before := r.journalLength(), configs(r)
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.advanceTime(timeouts.DriftCheckInterval)
		r.createNetwork()
		r.advanceTime(timeouts.DriftPollInterval)
		if configs(r) != before || len(r.startedServices(n)) > 0 {
			t.Errorf("%d changes of the configuration, started %v", configs(r)-before, r.startedServices(n))
		}
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", formatSteps(p))
		}
	})
	t.Run("away for good: taken away once, and written once when it is back", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		n, before := r.journalLength(), configs(r)
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		for range 4 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if r.hasPaths(cniConfig) || configs(r) != before+1 || len(r.startedServices(n)) > 0 {
			t.Errorf("%s is there: %t, %d changes, started %v", cniConfig, r.hasPaths(cniConfig), configs(r)-before, r.startedServices(n))
		}
		r.createNetwork()
		r.advanceTime(timeouts.DriftPollInterval)
		if !r.hasPaths(cniConfig) || configs(r) != before+2 || len(r.startedServices(n)) > 0 {
			t.Errorf("%s is there: %t, %d changes, started %v", cniConfig, r.hasPaths(cniConfig), configs(r)-before, r.startedServices(n))
		}
	})
}
