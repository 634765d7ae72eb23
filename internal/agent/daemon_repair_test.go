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

func (r *rig) isAllRunning() bool {
	return !slices.ContainsFunc(r.fullSpec().Services, func(s nodespec.Service) bool { return !r.isRunning(s.Name) })
}

//
func TestService_ServicesWithMissingFilesNotStopped(t *testing.T) {
	t.Parallel()
	quarantined := func(t *testing.T) *rig {
		r := newNodeRig(t)
		release := r.fullSpec().Releases[1]
		for _, shim := range r.runningShims() {
			r.must(r.Host().Processes.Kill(r.ctx, shim.PID))
		}
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return len(r.runningShims()) == 0 }))
		r.must(r.Drive().Remove(release.Directory + `\shim.exe`))
		return r
	}
	t.Run("a file of the container runtime was taken away: nothing stops, and it is reported once", func(t *testing.T) {
		t.Parallel()
		r := quarantined(t)
		stops := r.serviceCalls("Stop")
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if n := stops(""); n != 0 || !r.isAllRunning() {
			t.Errorf("%d services were stopped, all run: %t", n, r.isAllRunning())
		}
		if events := r.eventsByID(report.EventLeft); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "shim.exe of containerd") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("the same and one that depends on it stops: it is started", func(t *testing.T) {
		t.Parallel()
		r := quarantined(t)
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if !r.isAllRunning() {
			t.Error("not all run")
		}
	})
	for name, reboots := range map[string]bool{"the disk was full at an upgrade": false, "the disk was full at an upgrade, and the host restarts": true} {
		t.Run(name+": the former kubelet runs", func(t *testing.T) {
			t.Parallel()
			r := newNodeRig(t)
			before, _ := r.Service("kubelet")
			r.versions = versions{"kubelet": "v2"}
			spec := r.fullSpec()
			spec.Files[0].Content += "other: true\n"
			args := r.sendSpec(spec)
			restore := r.OnOperation(func(o fake.Operation) error { // small files still fit
				if o.Interface == "Files" && o.Method == "Write" && nodespec.IsWithin(o.Target, nodespec.ReleasesRoot) {
					return host.ErrDiskFull
				}
				return nil
			})
			if line, _ := r.run(append([]string{"apply"}, args...)...); line.Failure == nil || line.Failure.Step != "InstallRelease kubelet" {
				t.Fatalf("%s %+v", line.Type, line.Failure)
			}
			stops := r.serviceCalls("Stop")
			if reboots {
				r.rebootHost()
				r.advanceUntil("the node is back", func() bool { return r.isRunning("kube-proxy") && r.hasPaths(cniConfig) })
			}
			for range 3 {
				r.advanceTime(timeouts.DriftCheckInterval)
			}
			after, _ := r.Service("kubelet")
			if after.RunningCommandLine != before.CommandLine || !reboots && after.PID != before.PID || stops("") != 0 || !r.isAllRunning() {
				t.Errorf("%+v, %d services were stopped, all run: %t; %s", after, stops(""), r.isAllRunning(), r.readLog())
			}
			if config, err := r.Drive().ReadFile(spec.Files[0].Path); err != nil || strings.Contains(string(config), "other") {
				t.Errorf("its configuration is %s, %v", config, err)
			}
			restore()
			r.mustApply(spec)
			if p := r.runPlan(spec); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("left to do: %s", formatSteps(p))
			}
		})
	}
}

//
func TestService_FailedBootStepBlocksNothingElse(t *testing.T) {
	t.Parallel()
	up := func(r *rig) func() bool { return func() bool { return r.isAllRunning() && r.hasPaths(cniConfig) } }
	t.Run("an authority that cannot be trusted", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Roots" && o.Method == "Add" {
				return errors.New("refused")
			}
			return nil
		})
		r.must(r.Host().Roots.Remove(r.ctx, r.fullSpec().TrustedCertificates[0].Fingerprint))
		r.rebootHost()
		r.advanceUntil("the node is back", up(r))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.eventsByID(report.EventNotRepaired); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "refused") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("a computer name that waits for a restart", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		r.must(r.Host().System.SetHostName(r.ctx, "other"))
		r.rebootHost()
		r.advanceUntil("the node is back", up(r))
		r.advanceTime(timeouts.DriftCheckInterval)
		if events := r.eventsByID(report.EventLeft); len(events) != 1 || len(r.Events()) != 1 || !strings.Contains(events[0].Message, "a restart of the host") {
			t.Errorf("events %+v", r.Events())
		}
	})
	t.Run("the plugin's configuration that cannot be taken away keeps the kubelet", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		defer r.guardNetwork()()
		var free atomic.Bool
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Remove" && o.Target == cniConfig && !free.Load() {
				return host.ErrInUse
			}
			return nil
		})
		starts := r.serviceCalls("Start")
		r.rebootHost()
		r.advanceTime(timeouts.DriftCheckInterval)
		if starts("") != 0 || r.isRunning("kubelet") {
			t.Errorf("%d services were started", starts(""))
		}
		free.Store(true)
		r.advanceTime(timeouts.DriftCheckInterval)
		r.advanceUntil("the node is back", up(r))
	})
	t.Run("a service's configuration that cannot be written keeps that service only", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Write" && o.Target == `C:\k\kube-proxy.conf` {
				return host.ErrInUse
			}
			return nil
		})
		r.must(r.Host().Files.Remove(r.ctx, `C:\k\kube-proxy.conf`))
		r.rebootHost()
		starts := r.serviceCalls("Start")
		r.advanceUntil("the node takes pods", func() bool { return r.isRunning("hybrid-overlay-node") && r.hasPaths(cniConfig) })
		r.advanceTime(timeouts.DriftCheckInterval)
		if starts("kube-proxy") != 0 {
			t.Error("kube-proxy was started")
		}
	})
}

type networking = host.Networks

// hungNetworks is a Host Networking Service that does not respond while hang is true.
type hungNetworks struct {
	networking
	hang     *atomic.Bool
	requests *atomic.Int32
}

func (n hungNetworks) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	if !n.hang.Load() {
		return n.networking.Networks(ctx)
	}
	n.requests.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestService_ContinuesWhileHNSDoesNotRespond(t *testing.T) {
	t.Parallel()
	t.Run("it goes on looking, and knows it when it compares again", func(t *testing.T) {
		t.Parallel()
		var hang atomic.Bool
		var queries atomic.Int32
		r := newNodeRig(t, func(r *rig) {
			r.overrideHost(func(h *host.Host) { h.Networks = hungNetworks{h.Networks, &hang, &queries} })
		})
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.advanceTime(timeouts.DriftCheckInterval)
		hang.Store(true)
		r.awaitIdle()
		n := r.ticking.completedPolls()
		r.ticking.Step(timeouts.DriftPollInterval)
		for queries.Load() == 0 && r.ctx.Err() == nil {
			runtime.Gosched()
		}
		hang.Store(false) // for later queries
		r.ticking.Step(timeouts.CheckTimeout)
		for r.ticking.completedPolls() < n+2 && r.ctx.Err() == nil { // the end of this poll, and one more
			runtime.Gosched()
		}
		if r.ctx.Err() != nil {
			t.Fatal("it waits forever")
		}
		r.createNetwork()
		r.advanceTime(timeouts.DriftCheckInterval)
		if !r.hasPaths(cniConfig) || !r.isAllRunning() {
			t.Errorf("%s is there: %t, all run: %t", cniConfig, r.hasPaths(cniConfig), r.isAllRunning())
		}
	})
	t.Run("after a boot the services start that wake it", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		var awake atomic.Bool
		boot := r.BootID()
		r.OnOperation(func(o fake.Operation) error {
			if r.BootID() != boot && !awake.Load() && o.Interface == "Networks" && o.Process.Service == nodespec.ServiceAgent {
				return errors.New("the service does not answer")
			}
			return nil
		})
		r.rebootHost()
		r.advanceUntil("hybrid-overlay-node runs", func() bool { return r.isRunning("hybrid-overlay-node") })
		if r.hasPaths(cniConfig) {
			t.Error("the node takes pods")
		}
		awake.Store(true)
		r.advanceUntil("the node is back", func() bool { return r.isRunning("kube-proxy") && r.hasPaths(cniConfig) })
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
	})
}

//
func TestService_RestartRecreatesMissingNetwork(t *testing.T) {
	t.Parallel()
	t.Run("of hybrid-overlay-node", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		stops := r.serviceCalls("Stop")
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		r.advanceTime(timeouts.DriftCheckInterval)
		r.advanceTime(timeouts.NetworkTimeout)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.hasNetwork() }))
		r.advanceUntil("the node is back", func() bool { return r.isRunning("kube-proxy") && r.hasPaths(cniConfig) })
		if n := stops("hybrid-overlay-node"); n != 1 {
			t.Errorf("%d restarts", n)
		}
		if events := r.eventsByID(report.EventRepaired); !slices.ContainsFunc(events, func(e host.Event) bool {
			return strings.Contains(e.Message, "hybrid-overlay-node creates it only at its start")
		}) {
			t.Errorf("events %+v", events)
		}
	})
	t.Run("once in a while, not all the time", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		away := make(chan struct{})
		defer close(away)
		r.away.Store(&away)
		stops := r.serviceCalls("Stop")
		r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork))
		for range 16 { // slightly more than 15 minutes
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if n := stops("hybrid-overlay-node"); n < 2 || n > 3 {
			t.Errorf("%d restarts", n)
		}
	})
}
