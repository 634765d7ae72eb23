package agent_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// serviceCalls counts the calls of a method by the agent's service, by target.
func (r *rig) serviceCalls(method string) (count func(name string) int) {
	var all []string
	lock := make(chan struct{}, 1)
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Services" && o.Method == method {
			lock <- struct{}{}
			all = append(all, o.Target)
			<-lock
		}
		return nil
	})
	return func(name string) (n int) {
		lock <- struct{}{}
		defer func() { <-lock }()
		for _, each := range all {
			if name == "" || each == name {
				n++
			}
		}
		return n
	}
}

func (r *rig) allRun() bool {
	return !slices.ContainsFunc(r.full().Services, func(s nodespec.Service) bool { return !r.runsNow(s.Name) })
}

//
func TestServiceLeavesWhatLacksFilesRunning(t *testing.T) {
	t.Parallel()
	quarantined := func(t *testing.T) *rig {
		r := node(t)
		release := r.full().Releases[1]
		for _, shim := range r.shims() {
			r.must(r.Host().Processes.Kill(r.ctx, shim.PID))
		}
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return len(r.shims()) == 0 }))
		r.must(r.Drive().Remove(release.Directory + `\shim.exe`))
		return r
	}
	t.Run("a file of the container runtime was taken away: nothing stops, and it is reported once", func(t *testing.T) {
		t.Parallel()
		r := quarantined(t)
		stops := r.serviceCalls("Stop")
		for range 3 {
			r.pass(timeouts.DriftCheck)
		}
		if n := stops(""); n != 0 || !r.allRun() {
			t.Errorf("%d services were stopped, all run: %t", n, r.allRun())
		}
		if events := r.events(report.EventLeft); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "shim.exe of containerd") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("the same and one that depends on it stops: it is started", func(t *testing.T) {
		t.Parallel()
		r := quarantined(t)
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.pass(timeouts.DriftCheck)
		if !r.allRun() {
			t.Error("not all run")
		}
	})
	for name, reboots := range map[string]bool{"the disk was full at an upgrade": false, "the disk was full at an upgrade, and the host restarts": true} {
		t.Run(name+": the former kubelet runs", func(t *testing.T) {
			t.Parallel()
			r := node(t)
			before, _ := r.Service("kubelet")
			r.versions = versions{"kubelet": "v2"}
			spec := r.full()
			spec.Files[0].Content += "other: true\n"
			args := r.send(spec)
			mend := r.OnOperation(func(o fake.Operation) error { // small files still fit
				if o.Interface == "Files" && o.Method == "Write" && nodespec.Within(o.Target, nodespec.ReleasesRoot) {
					return host.ErrDiskFull
				}
				return nil
			})
			if line, _ := r.run(append([]string{"apply"}, args...)...); line.Failure == nil || line.Failure.Step != "InstallRelease kubelet" {
				t.Fatalf("%s %+v", line.Type, line.Failure)
			}
			stops := r.serviceCalls("Stop")
			if reboots {
				r.reboot()
				r.soon("the node is back", func() bool { return r.runsNow("kube-proxy") && r.there(cniConfig) })
			}
			for range 3 {
				r.pass(timeouts.DriftCheck)
			}
			after, _ := r.Service("kubelet")
			if after.RunningCommandLine != before.CommandLine || !reboots && after.PID != before.PID || stops("") != 0 || !r.allRun() {
				t.Errorf("%+v, %d services were stopped, all run: %t; %s", after, stops(""), r.allRun(), r.log())
			}
			if config, err := r.Drive().ReadFile(spec.Files[0].Path); err != nil || strings.Contains(string(config), "other") {
				t.Errorf("its configuration is %s, %v", config, err)
			}
			mend()
			r.applied(spec)
			if p := r.plan(spec); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("left to do: %s", names(p))
			}
		})
	}
}

//
func TestOneFailingStepKeepsTheNodeFromNothingAfterABoot(t *testing.T) {
	t.Parallel()
	up := func(r *rig) func() bool { return func() bool { return r.allRun() && r.there(cniConfig) } }
	t.Run("an authority that cannot be trusted", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Roots" && o.Method == "Add" {
				return errors.New("refused")
			}
			return nil
		})
		r.must(r.Host().Roots.Remove(r.ctx, r.full().TrustedCertificates[0].Fingerprint))
		r.reboot()
		r.soon("the node is back", up(r))
		for range 3 {
			r.pass(timeouts.DriftCheck)
		}
		if events := r.events(report.EventNotRepaired); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "refused") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("a computer name that waits for a restart", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		r.must(r.Host().System.SetHostName(r.ctx, "other"))
		r.reboot()
		r.soon("the node is back", up(r))
		r.pass(timeouts.DriftCheck)
		if events := r.events(report.EventLeft); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "a restart of the host") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("the plugin's configuration that cannot be taken away keeps the kubelet", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		defer r.guard()()
		var free atomic.Bool
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Remove" && o.Target == cniConfig && !free.Load() {
				return host.ErrInUse
			}
			return nil
		})
		starts := r.serviceCalls("Start")
		r.reboot()
		r.pass(timeouts.DriftCheck)
		if starts("") != 0 || r.runsNow("kubelet") {
			t.Errorf("%d services were started", starts(""))
		}
		free.Store(true)
		r.pass(timeouts.DriftCheck)
		r.soon("the node is back", up(r))
	})
	t.Run("a service's configuration that cannot be written keeps that service only", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Write" && o.Target == `C:\k\kube-proxy.conf` {
				return host.ErrInUse
			}
			return nil
		})
		r.must(r.Host().Files.Remove(r.ctx, `C:\k\kube-proxy.conf`))
		r.reboot()
		starts := r.serviceCalls("Start")
		r.soon("the node takes pods", func() bool { return r.runsNow("hybrid-overlay-node") && r.there(cniConfig) })
		r.pass(timeouts.DriftCheck)
		if starts("kube-proxy") != 0 {
			t.Error("kube-proxy was started")
		}
	})
}

type networking = host.Networks

// hungNetworks is a Host Networking Service that does not respond while hang is true.
type hungNetworks struct {
	networking
	hang  *atomic.Bool
	asked *atomic.Int32
}

func (n hungNetworks) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	if !n.hang.Load() {
		return n.networking.Networks(ctx)
	}
	n.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestServiceWhileNetworkingDoesNotAnswer(t *testing.T) {
	t.Parallel()
	t.Run("it goes on looking, and knows it when it compares again", func(t *testing.T) {
		t.Parallel()
		var hang atomic.Bool
		var asked atomic.Int32
		r := node(t, func(r *rig) {
			r.bend(func(h *host.Host) { h.Networks = hungNetworks{h.Networks, &hang, &asked} })
		})
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.pass(timeouts.DriftCheck)
		hang.Store(true)
		r.awaitIdle()
		n := r.ticking.looked()
		r.ticking.Step(timeouts.DriftPoll)
		for asked.Load() == 0 && r.ctx.Err() == nil {
			runtime.Gosched()
		}
		hang.Store(false) // for later queries
		r.ticking.Step(timeouts.LimitCheck)
		for r.ticking.looked() < n+2 && r.ctx.Err() == nil { // the end of this poll, and one more
			runtime.Gosched()
		}
		if r.ctx.Err() != nil {
			t.Fatal("it waits forever")
		}
		r.makeNetwork()
		r.pass(timeouts.DriftCheck)
		if !r.there(cniConfig) || !r.allRun() {
			t.Errorf("%s is there: %t, all run: %t", cniConfig, r.there(cniConfig), r.allRun())
		}
	})
	t.Run("after a boot the services start that wake it", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		var awake atomic.Bool
		boot := r.BootID()
		r.OnOperation(func(o fake.Operation) error {
			if r.BootID() != boot && !awake.Load() && o.Interface == "Networks" && o.Process.Service == nodespec.ServiceAgent {
				return errors.New("the service does not answer")
			}
			return nil
		})
		r.reboot()
		r.soon("hybrid-overlay-node runs", func() bool { return r.runsNow("hybrid-overlay-node") })
		if r.there(cniConfig) {
			t.Error("the node takes pods")
		}
		awake.Store(true)
		r.soon("the node is back", func() bool { return r.runsNow("kube-proxy") && r.there(cniConfig) })
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
	})
}

//
func TestANetworkThatStaysAwayIsMadeByARestart(t *testing.T) {
	t.Parallel()
	t.Run("of hybrid-overlay-node", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		stops := r.serviceCalls("Stop")
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.pass(timeouts.DriftCheck)
		r.pass(timeouts.LimitNetwork)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.hasNetwork() }))
		r.soon("the node is back", func() bool { return r.runsNow("kube-proxy") && r.there(cniConfig) })
		if n := stops("hybrid-overlay-node"); n != 1 {
			t.Errorf("%d restarts", n)
		}
		if events := r.events(report.EventRepaired); !slices.ContainsFunc(events, func(e host.Event) bool {
			return strings.Contains(e.Message, "hybrid-overlay-node makes it at its start")
		}) {
			t.Errorf("events %+v", events)
		}
	})
	t.Run("once in a while, not all the time", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		away := make(chan struct{})
		defer close(away)
		r.away.Store(&away)
		stops := r.serviceCalls("Stop")
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		for range 16 { // slightly more than 15 minutes
			r.pass(timeouts.DriftCheck)
		}
		if n := stops("hybrid-overlay-node"); n < 2 || n > 3 {
			t.Errorf("%d restarts", n)
		}
	})
}
