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

func (r *rig) makeNetwork() {
	r.Helper()
	r.must(r.CreateNetwork(host.HNSNetwork{Name: hnsNetwork, Type: "Overlay", Subnet: podSubnet}))
}

// reboot restarts the host and waits until the agent's service runs.
func (r *rig) reboot() {
	r.Helper()
	n, boot := r.count("ready", nodespec.ServiceAgent), r.BootID()
	r.loseNetworks()
	r.must(r.Host().Power.Reboot(r.ctx, "test"))
	r.awaitBoot(boot)
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.count("ready", nodespec.ServiceAgent) > n }))
}

func (r *rig) hasNetwork() bool { return r.HasNetwork(hnsNetwork) }

func (r *rig) runsNow(name string) bool {
	service, _ := r.Service(name)
	return service.State == host.ServiceRunning
}

// guard checks before each operation after the next boot that no kubelet runs while the plugin is configured
// without the network.
func (r *rig) guard() (stop func()) {
	var once sync.Once
	boot := r.BootID()
	return r.OnOperation(func(o fake.Operation) error {
		if r.BootID() != boot && r.runsNow("kubelet") && r.there(cniConfig) && !r.hasNetwork() {
			once.Do(func() { r.Errorf("before %s the kubelet runs, and %s is there without the network", o, cniConfig) })
		}
		return nil
	})
}

// soon advances the time of the agent's service poll by poll until a condition holds.
func (r *rig) soon(what string, is func() bool) {
	r.Helper()
	for range 8 {
		if is() {
			return
		}
		r.pass(timeouts.DriftPoll)
	}
	r.Fatalf("not within %s: %s", 16*timeouts.DriftPoll, what)
}

//
func TestNoPodIsTakenAfterABootBeforeTheNetworkIsThere(t *testing.T) {
	t.Parallel()
	t.Run("the node comes back by itself, and that is no event", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		n := r.entries()
		r.reboot()
		r.soon("the node is back", func() bool { return r.runsNow("kube-proxy") && r.there(cniConfig) })
		if got, want := r.runs(n), []string{"kubelet", "hybrid-overlay-node", "kube-proxy"}; !slices.Equal(after(got, "kubelet"), want) {
			t.Errorf("started %q, want %q", got, want)
		}
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
		if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
			t.Errorf("routes %v", routes)
		}
		if p := r.plan(r.full()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("needs %v, left to do: %s", p.Needs, names(p))
		}
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.soon("the kubelet is repaired", func() bool { return r.runsNow("kube-proxy") })
		if events := r.events(report.EventRepaired); len(events) != 1 {
			t.Errorf("a repair after the start is reported %d times", len(events))
		}
	})
	t.Run("while the API server is away the kubelet runs and takes none", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		away := make(chan struct{})
		r.away.Store(&away)
		r.reboot()
		r.soon("the kubelet runs", func() bool { return r.runsNow("hybrid-overlay-node") })
		n := r.entries()
		for range 3 {
			r.pass(timeouts.DriftCheck)
		}
		if r.there(cniConfig) || len(r.runs(n)) > 0 || len(r.Events()) > 0 {
			t.Errorf("%s is there: %t; started again: %v; events: %v", cniConfig, r.there(cniConfig), r.runs(n), r.Events())
		}
		r.pass(timeouts.LimitNetwork)
		if events := r.events(report.EventLeft); len(events) != 1 || !strings.Contains(events[0].Message, hnsNetwork) {
			t.Errorf("after %s: %+v", timeouts.LimitNetwork, r.Events())
		}
		close(away)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.hasNetwork() }))
		r.pass(timeouts.DriftPoll)
		if !r.there(cniConfig) || !r.runsNow("kube-proxy") {
			t.Errorf("%s is there: %t, kube-proxy runs: %t", cniConfig, r.there(cniConfig), r.runsNow("kube-proxy"))
		}
	})
	t.Run("a service that Windows is slow to start holds up nothing and is left to Windows for a while", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		r.must(r.Drive().WriteFile(`C:\idle.exe`, program("idle.exe", "v1")))
		spec := r.full()
		spec.Services = append(spec.Services, nodespec.Service{ServiceConfig: host.ServiceConfig{
			Name: "exporter", CommandLine: `C:\idle.exe`, StartType: host.StartAutomatic, Description: nodespec.DescriptionPrefix + " exporter",
		}})
		r.applied(spec)
		mend := r.ServiceFailsToStart("exporter", 1)
		r.reboot()
		mend()
		r.soon("the node is back", func() bool { return r.runsNow("kube-proxy") })
		if r.runsNow("exporter") || len(r.Events()) > 0 {
			t.Errorf("the service runs: %t; events %+v", r.runsNow("exporter"), r.Events())
		}
		r.pass(timeouts.BootGrace)
		r.pass(timeouts.DriftCheck)
		if events := r.events(report.EventRepaired); !r.runsNow("exporter") || len(events) != 1 {
			t.Errorf("the service runs: %t; events %+v", r.runsNow("exporter"), events)
		}
	})
	t.Run("a verb that comes before the service does the same", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		mend := r.ServiceFailsToStart(nodespec.ServiceAgent, 1)
		boot := r.BootID()
		r.loseNetworks()
		r.must(r.Host().Power.Reboot(r.ctx, "test"))
		r.awaitBoot(boot)
		mend()
		steps := r.applied(r.full())
		remove, start := slices.Index(steps, "RemovePath "+cniConfig), slices.Index(steps, "StartService kubelet")
		await, write := slices.Index(steps, "AwaitNetwork "+hnsNetwork), slices.Index(steps, "WriteFile "+cniConfig)
		if remove < 0 || remove > start || start > await || await > write {
			t.Errorf("steps %q", steps)
		}
	})
}

// after returns the names from the last occurrence of the given name on.
func after(names []string, name string) []string {
	for i, each := range slices.Backward(names) {
		if each == name {
			return names[i:]
		}
	}
	return nil
}

//
func TestServiceKilledAnywhereAfterABoot(t *testing.T) {
	t.Parallel()
	for n := range boundaries(12) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := node(t)
			defer r.guard()()
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
			r.reboot()
			up := func() bool { return r.runsNow("kube-proxy") && r.there(cniConfig) }
			for range 12 {
				if !r.runsNow(nodespec.ServiceAgent) {
					r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent)) // as Windows does after a failure
				}
				if up() {
					break
				}
				r.tick()
			}
			lock.Lock()
			t.Log("killed before " + at)
			lock.Unlock()
			if !up() {
				t.Fatalf("the node is not back: %s", names(r.plan(r.full())))
			}
			for range 2 {
				r.tick()
			}
			if !r.runsNow(nodespec.ServiceAgent) {
				r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent))
			}
			r.applied(r.full())
			if p := r.plan(r.full()); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("needs %v, left to do: %s", p.Needs, names(p))
			}
		})
	}
}

// tick lets the agent's service poll once, or end.
func (r *rig) tick() {
	r.Helper()
	ended := func() bool { return !r.runsNow(nodespec.ServiceAgent) }
	idle := func(*fake.Machine) bool { return r.ticking.isIdle() || ended() }
	r.must(r.WaitFor(r.ctx, idle))
	if ended() {
		return
	}
	r.ticking.Step(timeouts.DriftPoll)
	r.must(r.WaitFor(r.ctx, idle))
}

//
func TestANetworkThatIsMadeAnewIsNoReasonToFlap(t *testing.T) {
	t.Parallel()
	configs := func(r *rig) int { return r.count(fake.KindWrite, cniConfig) + r.count(fake.KindFile, cniConfig) }
	t.Run("away for some seconds: nothing is taken away, nothing restarts", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		n, before := r.entries(), configs(r)
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.pass(timeouts.DriftCheck)
		r.makeNetwork()
		r.pass(timeouts.DriftPoll)
		if configs(r) != before || len(r.runs(n)) > 0 {
			t.Errorf("%d changes of the configuration, started %v", configs(r)-before, r.runs(n))
		}
		if p := r.plan(r.full()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", names(p))
		}
	})
	t.Run("away for good: taken away once, and written once when it is back", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		n, before := r.entries(), configs(r)
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		for range 4 {
			r.pass(timeouts.DriftCheck)
		}
		if r.there(cniConfig) || configs(r) != before+1 || len(r.runs(n)) > 0 {
			t.Errorf("%s is there: %t, %d changes, started %v", cniConfig, r.there(cniConfig), configs(r)-before, r.runs(n))
		}
		r.makeNetwork()
		r.pass(timeouts.DriftPoll)
		if !r.there(cniConfig) || configs(r) != before+2 || len(r.runs(n)) > 0 {
			t.Errorf("%s is there: %t, %d changes, started %v", cniConfig, r.there(cniConfig), configs(r)-before, r.runs(n))
		}
	})
}
