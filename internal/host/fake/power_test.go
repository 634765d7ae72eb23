package fake

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestReboot(t *testing.T) {
	t.Run("a reboot ends all processes and starts automatic services in dependency order", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle}, func(o *Options) { o.RebootDuration = time.Minute })
		// "a" sorts before its dependency, so that only the dependency can determine the order.
		r.installService("a", "idle", func(c *host.ServiceConfig) { c.StartType, c.Dependencies = host.StartAutomatic, []string{"z"} })
		r.installService("z", "idle", func(c *host.ServiceConfig) { c.StartType = host.StartAutomatic })
		r.installService("manual", "idle")
		r.requireNoError(r.Services.Start(r.ctx, "manual"))
		p := r.startIdleProcess(nil)
		before := r.BootID()

		r.requireNoError(p.Host.Power.Reboot(r.ctx, "test"))
		if p.Alive() || r.IsRunning() {
			t.Fatal("the process or the machine still runs after the reboot was accepted")
		}
		r.requireError(r.Files.Remove(r.ctx, `C:\idle.exe`), ErrPoweredOff)
		r.awaitCondition(r.clock.HasWaiters)
		r.clock.Step(time.Minute)
		r.awaitCondition(r.IsRunning)

		if r.BootID() == before {
			t.Error("the boot ID did not change")
		}
		if r.serviceState("a") != host.ServiceRunning || r.serviceState("z") != host.ServiceRunning || r.serviceState("manual") != host.ServiceStopped {
			t.Errorf("states: a %s, z %s, manual %s", r.serviceState("a"), r.serviceState("z"), r.serviceState("manual"))
		}
		var order []string
		for _, e := range r.Journal().Entries(func(e Entry) bool { return e.Detail == "a runs" || e.Detail == "z runs" }) {
			order = append(order, e.Detail)
		}
		if !slices.Equal(order, []string{"z runs", "a runs"}) {
			t.Errorf("order of starts: %v", order)
		}
		info, err := r.System.Info(r.ctx)
		r.requireNoError(err)
		if !info.BootTime.Equal(epoch.Add(time.Minute)) {
			t.Errorf("boot time %s", info.BootTime)
		}
	})
	t.Run("a machine that lingers works on until its time is over, and reboots once", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle}, func(o *Options) { o.ShutdownDelay, o.RebootDuration = time.Minute, time.Minute })
		before := r.BootID()
		p := r.startIdleProcess(nil)
		r.requireNoError(p.Host.Power.Reboot(r.ctx, "test"))
		r.requireNoError(r.Power.Reboot(r.ctx, "again"))
		r.clock.Step(time.Minute - time.Second)
		r.installService("late", "idle")
		r.requireNoError(r.Services.Start(r.ctx, "late"))
		if !p.Alive() || !r.IsRunning() || r.BootID() != before {
			t.Errorf("before its end the process lives: %t, the machine runs: %t, in the same boot: %t", p.Alive(), r.IsRunning(), r.BootID() == before)
		}
		r.clock.Step(time.Second)
		r.awaitCondition(func() bool { return !r.IsRunning() })
		if p.Alive() {
			t.Error("the process outlives the shutdown")
		}
		r.awaitCondition(r.clock.HasWaiters)
		r.clock.Step(time.Minute)
		r.awaitCondition(r.IsRunning)
		if n := r.Journal().Count(KindReboot); n != 1 || r.BootID() == before {
			t.Errorf("%d reboots, another boot: %t", n, r.BootID() != before)
		}
	})
	t.Run("a machine that lingers and is switched off does not come back", func(t *testing.T) {
		r := bootMachine(t, nil, func(o *Options) { o.ShutdownDelay = time.Hour })
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.Close()
		if r.clock.Step(time.Hour); r.IsRunning() {
			t.Error("it runs")
		}
		r.requireNoError(r.Boot(r.ctx))
		before := r.BootID()
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.clock.Step(time.Hour)
		r.awaitCondition(func() bool { return r.IsRunning() && r.BootID() != before })
	})
	t.Run("host name, features and the environment of services wait for the reboot", func(t *testing.T) {
		seen := make(chan string, 2)
		r := bootMachine(t, programs{"env": func(ctx context.Context, p *Process) int {
			seen <- p.Environ["NEW"]
			<-ctx.Done()
			return 0
		}})
		r.installService("env", "env")
		r.requireNoError(r.System.SetHostName(r.ctx, "worker-1"))
		r.requireNoError(r.Features.Enable(r.ctx, "containers"))
		r.requireNoError(r.Environment.Set(r.ctx, "NEW", "value"))
		r.requireNoError(r.Services.Start(r.ctx, "env"))
		info, err := r.System.Info(r.ctx)
		r.requireNoError(err)
		state, err := r.Features.State(r.ctx, "Containers")
		r.requireNoError(err)
		if info.HostName != "win-a" || info.PendingHostName != "worker-1" || !info.RebootPending || state != host.FeatureEnablePending {
			t.Errorf("before the reboot: %+v, Containers %s", info, state)
		}
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.awaitCondition(r.IsRunning)
		info, err = r.System.Info(r.ctx)
		r.requireNoError(err)
		state, err = r.Features.State(r.ctx, "Containers")
		r.requireNoError(err)
		if info.HostName != "worker-1" || info.PendingHostName != "" || info.RebootPending || state != host.FeatureEnabled {
			t.Errorf("after the reboot: %+v, Containers %s", info, state)
		}
		r.requireNoError(r.Services.Start(r.ctx, "env"))
		if first, second := <-seen, <-seen; first != "" || second != "value" {
			t.Errorf("the service saw %q before and %q after the reboot", first, second)
		}
	})
	t.Run("changes that are taken back need no reboot", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireNoError(r.Features.Enable(r.ctx, "Containers"))
		r.requireNoError(r.Features.Disable(r.ctx, "Containers"))
		r.requireNoError(r.System.SetHostName(r.ctx, "other"))
		r.requireNoError(r.System.SetHostName(r.ctx, "win-a"))
		info, err := r.System.Info(r.ctx)
		r.requireNoError(err)
		if info.RebootPending {
			t.Error("a reboot is pending")
		}
	})
	t.Run("hooks run at every boot and shutdown", func(t *testing.T) {
		r := bootMachine(t, nil)
		events := make(chan string, 4)
		r.OnBoot(func() { events <- "boot" })
		r.OnShutdown(func() { events <- "shutdown" })
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		if first, second := <-events, <-events; first != "shutdown" || second != "boot" {
			t.Errorf("%s, %s", first, second)
		}
		r.PowerOff()
		if got := <-events; got != "shutdown" {
			t.Error(got)
		}
	})
	t.Run("a machine that is switched off during a reboot stays off until it is booted", func(t *testing.T) {
		r := bootMachine(t, nil, func(o *Options) { o.RebootDuration = time.Hour })
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.Close()
		r.clock.Step(time.Hour)
		if r.IsRunning() {
			t.Error("it runs")
		}
		r.requireNoError(r.Boot(r.ctx))
		if !r.IsRunning() {
			t.Error("it does not run")
		}
	})
	t.Run("the state of the machine survives, but for overlay networks", func(t *testing.T) {
		r := bootMachine(t, nil, func(o *Options) { o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled} })
		r.write(`C:\file`, "content")
		r.requireNoError(r.Firewall.SetRule(r.ctx, host.FirewallRule{Name: "n", DisplayName: "n", Protocol: "TCP", LocalPort: 10250}))
		r.requireNoError(r.CreateNetwork(host.HNSNetwork{Name: "net", Type: "NAT", Subnet: "10.1.0.0/24"}))
		before := r.Snapshot()
		r.requireNoError(r.CreateNetwork(host.HNSNetwork{Name: "overlay", Type: "Overlay", Subnet: "10.2.0.0/24"}))
		_, err := r.Networks.CreateEndpoint(r.ctx, "overlay", "endpoint", "")
		r.requireNoError(err)
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.awaitCondition(r.IsRunning)
		if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
			t.Errorf("snapshot (-before +after):\n%s", diff)
		}
	})
}
