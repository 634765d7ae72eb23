package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// newNodeRig returns a configured host with an agent's service that waits for its clock.
func newNodeRig(t *testing.T, change ...func(*rig)) *rig {
	t.Helper()
	r := newRig(t)
	for _, each := range change {
		each(r)
	}
	r.start()
	r.configureHost()
	r.awaitServices()
	r.advanceTime(timeouts.DriftPollInterval)
	return r
}

// advanceTime advances the time of the agent's service and waits for the service to finish the due work.
func (r *rig) advanceTime(d time.Duration) {
	r.Helper()
	for _, step := range []time.Duration{d, timeouts.DriftPollInterval} {
		r.awaitIdle()
		r.ticking.Step(step)
		r.awaitIdle()
	}
}

// awaitIdle waits until the agent's service waits for its next poll.
func (r *rig) awaitIdle() {
	r.Helper()
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.ticking.isIdle() }))
}

func (r *rig) readLog() string {
	data, err := r.Drive().ReadFile(serviceLog)
	r.must(err)
	return string(data)
}

// A stopped, deleted or changed service of a node is restored to the expected state without user action. R-092
func TestService_RepairsDrift(t *testing.T) {
	t.Parallel()
	drifts := map[string]func(r *rig, h host.Host){
		"a stopped service, and those that stopped with it": func(r *rig, h host.Host) { r.must(h.Services.Stop(r.ctx, "containerd")) },
		"a deleted service": func(r *rig, h host.Host) {
			r.must(h.Services.Stop(r.ctx, "kube-proxy"))
			r.must(h.Services.Delete(r.ctx, "kube-proxy"))
		},
		"another command line": func(r *rig, h host.Host) {
			service, _ := r.Service("kubelet")
			service.CommandLine += " --v=10"
			r.must(h.Services.Configure(r.ctx, service.ServiceConfig))
		},
		"a crash without recovery": func(r *rig, _ host.Host) { r.must(r.CrashService("kubelet", 3)) },
		"a removed link":           func(r *rig, h host.Host) { r.must(h.Files.Remove(r.ctx, `C:\k\kubelet.exe`)) },
		"a changed file":           func(r *rig, _ host.Host) { r.must(r.Drive().WriteFile(`C:\k\kubelet.conf`, []byte("other"))) },
		"a folder open to others": func(r *rig, h host.Host) {
			r.must(h.Tree.MakeDirectory(r.ctx, nodespec.Root, host.AccessInherited))
		},
		"a deleted firewall rule": func(r *rig, h host.Host) { r.must(h.Firewall.DeleteRule(r.ctx, "ContainerLogsPort")) },
		"a changed variable":      func(r *rig, h host.Host) { r.must(h.Environment.Set(r.ctx, "HTTPS_PROXY", "other")) },
	}
	for name, drift := range drifts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newNodeRig(t)
			drift(r, r.Host())
			r.advanceTime(timeouts.DriftCheckInterval)
			if p := r.runPlan(r.fullSpec()); len(p.Steps) != 0 {
				t.Errorf("not repaired: %s", formatSteps(p))
			}
			for _, want := range r.fullSpec().Services {
				if service, _ := r.Service(want.Name); service.State != host.ServiceRunning {
					t.Errorf("service %s does not run", want.Name)
				}
			}
			if !strings.Contains(r.readLog(), "because") {
				t.Errorf("the log does not say what was done: %s", r.readLog())
			}
			if events := r.eventsByID(report.EventRepaired); len(events) != 1 || events[0].Level != host.EventInformation {
				t.Errorf("the event log does not say once what was done: %+v", events)
			}
		})
	}
}

func TestService_StartsStoppedServiceAtNextPoll(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
	r.advanceTime(timeouts.DriftPollInterval)
	if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
		t.Error("kube-proxy does not run")
	}
}

func TestService_NoRepairIfIdleOrBlocked(t *testing.T) {
	t.Parallel()
	t.Run("a host with nothing to repair: it writes nothing", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		before := len(r.Journal().Entries(nil))
		for range 10 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		for _, entry := range r.Journal().Entries(nil)[before:] {
			t.Errorf("%s %s", entry.Kind, entry.Detail)
		}
	})
	t.Run("a host on which a verb is at work", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.writeLock("sshd.exe")
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceStopped {
			t.Error("it was repaired")
		}
	})
	t.Run("a host that is being given back", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		k := &killer{n: 3} // after the mark, before the first service stops
		k.registerHook(r)
		r.run("remove")
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceStopped {
			t.Error("it was repaired, killed before " + k.at)
		}
	})
	t.Run("what needs a restart of the host: it says so once", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Host().Features.Disable(r.ctx, "Containers"))
		r.advanceTime(timeouts.DriftCheckInterval)
		r.advanceTime(timeouts.DriftCheckInterval)
		if r.Journal().Count(fake.KindReboot) != 1 {
			t.Error("it restarted the host")
		}
		if n := strings.Count(r.readLog(), "left to the operator: a restart of the host"); n != 1 {
			t.Errorf("it says so %d times: %s", n, r.readLog())
		}
	})
	t.Run("a release whose files are gone: the rest is repaired", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Drive().RemoveAll(versions{}.releaseOf("cni").Directory))
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
		if !strings.Contains(r.readLog(), "left to the operator") {
			t.Error(r.readLog())
		}
	})
}

func TestService_DoesNotStopItself(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	service, _ := r.Service(nodespec.ServiceAgent)
	pid := service.PID
	service.CommandLine += " --other"
	r.must(r.Host().Services.Configure(r.ctx, service.ServiceConfig))
	r.advanceTime(timeouts.DriftCheckInterval)
	after, _ := r.Service(nodespec.ServiceAgent)
	if after.PID != pid || strings.HasSuffix(after.CommandLine, "--other") {
		t.Errorf("process %d then %d, command line %s", pid, after.PID, after.CommandLine)
	}
}

func TestService_WaitsWithoutSpec(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	r.must(r.Drive().Remove(nodespec.SpecPath))
	r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
	r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
	if service, _ := r.Service(nodespec.ServiceAgent); service.ExitCode != 0 {
		t.Errorf("exit code %d", service.ExitCode)
	}
}

// writeLock writes the lock of a command that runs in the named process.
func (r *rig) writeLock(program string) {
	r.Helper()
	for _, process := range r.RunningProcesses() {
		if process.Name == program {
			data, err := json.Marshal(map[string]any{
				"verb": "apply", "pid": process.PID, "program": process.Path, "bootID": r.BootID(), "since": time.Now(),
			})
			r.must(err)
			r.must(r.Drive().WriteFile(nodespec.LockPath, data))
			return
		}
	}
	r.Fatalf("no process %s", program)
}
