package agent_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// startedServices returns the services started since the n-th journal entry, in order.
func (r *rig) startedServices(n int) []string {
	var names []string
	for _, entry := range r.Journal().Entries(nil)[n:] {
		if name, found := strings.CutSuffix(entry.Detail, " runs"); found && entry.Kind == fake.KindService {
			names = append(names, name)
		}
	}
	return names
}

func (r *rig) journalLength() int { return len(r.Journal().Entries(nil)) }

// Stopped, deleted or changed objects are restored within seconds, and their dependents are restarted in order.
//
func TestService_RepairsWithinSeconds(t *testing.T) {
	t.Parallel()
	reconfigure := func(name string, change func(*host.Service)) func(*rig, host.Host) {
		return func(r *rig, h host.Host) {
			service, _ := r.Service(name)
			change(&service)
			r.must(h.Services.Configure(r.ctx, service.ServiceConfig))
		}
	}
	for name, c := range map[string]struct {
		drift func(r *rig, h host.Host)
		runs  []string
	}{
		"a stopped service": {
			func(r *rig, h host.Host) { r.must(h.Services.Stop(r.ctx, "kube-proxy")) }, []string{"kube-proxy"},
		},
		"a stopped service that others depend on": {
			func(r *rig, h host.Host) { r.must(h.Services.Stop(r.ctx, "kubelet")) },
			[]string{"kubelet", "hybrid-overlay-node", "kube-proxy"},
		},
		"a deleted service that others depend on": {
			func(r *rig, h host.Host) {
				r.must(h.Services.Stop(r.ctx, "containerd"))
				r.must(h.Services.Delete(r.ctx, "containerd"))
			},
			[]string{"containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"},
		},
		"another command line": {
			reconfigure("hybrid-overlay-node", func(s *host.Service) { s.CommandLine += " --other" }),
			[]string{"hybrid-overlay-node", "kube-proxy"},
		},
		"a disabled service": {reconfigure("kube-proxy", func(s *host.Service) { s.StartType = host.StartDisabled }), nil},
		//
		"a killed process": {
			func(r *rig, h host.Host) {
				service, _ := r.Service("kube-proxy")
				r.must(h.Processes.Kill(r.ctx, service.PID))
			},
			[]string{"kube-proxy"},
		},
		"a deleted configuration file": {
			func(r *rig, h host.Host) { r.must(h.Files.Remove(r.ctx, `C:\k\kube-proxy.conf`)) }, []string{"kube-proxy"},
		},
		"a changed configuration file": {
			func(r *rig, _ host.Host) {
				r.must(r.Drive().WriteFile(`C:\k\containerd\containerd_conf.toml`, []byte("version = 2\n")))
			},
			[]string{"containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"},
		},
		"a deleted link": {func(r *rig, h host.Host) { r.must(h.Files.Remove(r.ctx, `C:\k\kubelet.exe`)) }, nil},
		"another spec on the host": {
			func(r *rig, _ host.Host) {
				spec := r.fullSpec()
				spec.Files[3].Content += "mode: other\n"
				data, err := spec.Encode()
				r.must(err)
				r.must(r.Drive().WriteFile(nodespec.SpecPath, data))
			},
			[]string{"kube-proxy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newNodeRig(t)
			n := r.journalLength()
			c.drift(r, r.Host())
			r.advanceTime(timeouts.DriftPollInterval)
			if got := r.startedServices(n); !slices.Equal(got, c.runs) {
				t.Errorf("restarted %q, want %q", got, c.runs)
			}
			if name == "another spec on the host" {
				return
			}
			if p := r.runPlan(r.fullSpec()); len(p.Steps) != 0 {
				t.Errorf("not repaired: %s", formatSteps(p))
			}
		})
	}
}

// A change during a comparison of the host with the spec is not lost. R-092
func TestService_DetectsChangeDuringComparison(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	armed := true
	r.OnOperation(func(o fake.Operation) error {
		// The last part of the facts: services were queried before.
		if o.Process.Service == nodespec.ServiceAgent && o.Interface == "EventLog" && o.Method == "HasSource" && armed {
			armed = false
			if err := r.Host().Services.Stop(r.ctx, "kube-proxy"); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	r.advanceTime(timeouts.DriftCheckInterval)
	r.advanceTime(timeouts.DriftPollInterval)
	if service, _ := r.Service("kube-proxy"); armed || service.State != host.ServiceRunning {
		t.Error("kube-proxy does not run")
	}
}

func TestService_WaitsForBootGracePeriod(t *testing.T) {
	t.Parallel()
	reboot := func(r *rig) {
		n, boot := r.countEntries("ready", nodespec.ServiceAgent), r.BootID()
		r.must(r.Host().Power.Reboot(r.ctx, "test"))
		r.awaitBoot(boot)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > n }))
	}
	t.Run("services that Windows has started are no event", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		reboot(r)
		r.advanceTime(timeouts.DriftCheckInterval)
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("it waits although all services ran")
		}
	})
	t.Run("one that Windows has not started yet is left to Windows for a while", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		restore := r.FailServiceStart("containerd", 1)
		reboot(r)
		restore()
		r.advanceTime(timeouts.DriftCheckInterval)
		if service, _ := r.Service("containerd"); service.State != host.ServiceStopped {
			t.Error("it was started")
		}
		r.advanceTime(timeouts.BootGracePeriod)
		if service, _ := r.Service("containerd"); service.State != host.ServiceRunning || len(r.eventsByID(report.EventRepaired)) != 1 {
			t.Error("it was not started")
		}
	})
	t.Run("one that stops after the operator was there is not left for a while", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		restore := r.FailServiceStart("kube-proxy", 1)
		reboot(r)
		restore()
		r.must(r.Host().Files.Remove(r.ctx, nodespec.AppliedPath)) // the operator writes the file only after a change
		r.mustApply(r.fullSpec())
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(2 * timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("it was not started")
		}
	})
}

// A service that exits immediately after each start is not restarted at the maximum rate.
func TestService_PacesRepairs(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	n := r.journalLength()
	for range 24 { // two minutes
		if service, _ := r.Service("kube-proxy"); service.State == host.ServiceRunning {
			r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		}
		r.advanceTime(timeouts.DriftPollInterval)
	}
	if got := len(r.startedServices(n)); got < 3 || got > 8 {
		t.Errorf("%d restarts", got)
	}
	for range 6 {
		r.advanceTime(timeouts.BackoffResetDelay)
	}
	r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
	n = r.journalLength()
	r.advanceTime(timeouts.DriftPollInterval)
	if got := r.startedServices(n); len(got) != 1 {
		t.Error("later it is not restarted at once")
	}
}

// The service survives outages of the API server because it does not depend on the API server. R-086
func TestService_NeedsNoAPIServer(t *testing.T) {
	t.Parallel()
	t.Run("it repairs while nothing answers on any port, and notices no difference", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Probes" {
				t.Errorf("the service asks %s", o)
				return errors.New("connection refused")
			}
			return nil
		})
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		r.must(r.Host().Services.Stop(r.ctx, "containerd"))
		r.must(r.Host().Files.Remove(r.ctx, `C:\k\kubelet.conf`))
		r.advanceTime(timeouts.DriftPollInterval)
		if p := r.runPlan(r.fullSpec()); len(p.Steps) != 0 {
			t.Errorf("not repaired: %s", formatSteps(p))
		}
	})
	t.Run("the program has no client of it", func(t *testing.T) {
		t.Parallel()
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/windows-machine-config/wmco/cmd/wicd")
		command.Env = append(command.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(out))
		if !slices.Contains(packages, "github.com/windows-machine-config/wmco/internal/agent") {
			t.Fatalf("the list lacks the agent: %q", packages)
		}
		for _, name := range packages {
			if strings.HasPrefix(name, "k8s.io/client-go") || strings.HasPrefix(name, "sigs.k8s.io/controller-runtime") {
				t.Errorf("it has %s", name)
			}
		}
	})
}

// Two alternately failing services do not cause comparisons at the maximum rate.
func TestService_PacesAlternatingRepairs(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	n := r.journalLength()
	for i := range 24 { // two minutes
		name := []string{"kube-proxy", "hybrid-overlay-node"}[i%2]
		if service, _ := r.Service(name); service.State == host.ServiceRunning {
			r.must(r.Host().Services.Stop(r.ctx, name))
		}
		r.advanceTime(timeouts.DriftPollInterval)
	}
	// With hybrid-overlay-node kube-proxy stops, too.
	if got := len(r.startedServices(n)); got < 3 || got > 20 {
		t.Errorf("%d restarts", got)
	}
}

// A service that does not start at all is not started at the maximum rate, however often its state changes.
func TestService_PacesFailedRepairs(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	r.FailServiceStart("kube-proxy", 7)
	r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
	starts := 0
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Services" && o.Method == "Start" && o.Target == "kube-proxy" {
			starts++
		}
		return nil
	})
	for i := range 24 { // two minutes; the size of the file changes each time
		r.must(r.Drive().WriteFile(`C:\k\kubelet.conf`, []byte(strings.Repeat("x", i))))
		r.advanceTime(timeouts.DriftPollInterval)
	}
	if starts < 2 || starts > 8 {
		t.Errorf("%d attempts", starts)
	}
}

// A clock that is set back after the boot does not extend the time for Windows to start services.
func TestService_BootGracePeriodIgnoresWrongClock(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	restore := r.FailServiceStart("kube-proxy", 1)
	r.overrideHost(func(h *host.Host) { h.System = futureBoot{h.System} })
	n, boot := r.countEntries("ready", nodespec.ServiceAgent), r.BootID()
	r.must(r.Host().Power.Reboot(r.ctx, "test"))
	r.awaitBoot(boot)
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > n }))
	restore()
	r.advanceTime(timeouts.DriftPollInterval)
	r.advanceTime(timeouts.BootGracePeriod)
	if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
		t.Error("it was not started")
	}
}

// futureBoot is a system with a boot time hours in the future.
type futureBoot struct{ host.System }

func (s futureBoot) Info(ctx context.Context) (host.SystemInfo, error) {
	info, err := s.System.Info(ctx)
	info.BootTime = info.BootTime.Add(7 * time.Hour)
	return info, err
}
