package fake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestCrashRecovery(t *testing.T) {
	recovering := func(c *host.ServiceConfig) {
		c.RestartDelays, c.ResetPeriod = []time.Duration{time.Second, time.Minute}, time.Hour
	}
	crash := func(r *rig) {
		r.Helper()
		r.requireNoError(r.CrashService("s", 9))
		if r.serviceState("s") != host.ServiceStopped {
			r.Fatalf("state after the crash: %s", r.serviceState("s"))
		}
	}
	start := func(t *testing.T) *rig {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("s", "idle", recovering)
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		return r
	}
	t.Run("each crash waits for its delay, and the last delay counts for all later ones", func(t *testing.T) {
		r := start(t)
		for _, delay := range []time.Duration{time.Second, time.Minute, time.Minute} {
			crash(r)
			r.clock.Step(delay - 1)
			if r.serviceState("s") != host.ServiceStopped {
				t.Fatalf("restarted before %s", delay)
			}
			r.clock.Step(1)
			r.waitState("s", host.ServiceRunning)
		}
	})
	t.Run("a reset period without a crash starts the count anew", func(t *testing.T) {
		r := start(t)
		crash(r)
		r.clock.Step(time.Second)
		r.waitState("s", host.ServiceRunning)
		r.clock.Step(time.Hour)
		crash(r)
		r.clock.Step(time.Second)
		r.waitState("s", host.ServiceRunning)
	})
	t.Run("a program that ends well is not restarted", func(t *testing.T) {
		r := bootMachine(t, programs{"short": func(context.Context, *Process) int { return 0 }})
		r.installService("s", "short", recovering)
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		r.waitState("s", host.ServiceStopped)
		if r.clock.HasWaiters() {
			t.Error("a restart is waiting")
		}
	})
	// As on Windows, unless the failure-actions flag of the service is set.
	t.Run("a program that reports an error is restarted only if that counts as a crash", func(t *testing.T) {
		for _, counts := range []bool{false, true} {
			r := bootMachine(t, programs{"failing": func(context.Context, *Process) int { return 7 }})
			r.installService("s", "failing", recovering, func(c *host.ServiceConfig) {
				recovery := c.FullRecovery()
				recovery.AfterErrors = counts
				c.SetRecovery(recovery)
			})
			r.requireNoError(r.Services.Start(r.ctx, "s"))
			r.waitState("s", host.ServiceStopped)
			if r.clock.HasWaiters() != counts {
				t.Errorf("it counts as a crash: %t; a restart is waiting: %t", counts, r.clock.HasWaiters())
			}
		}
	})
	t.Run("each kind of action is carried out", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("s", "idle", func(c *host.ServiceConfig) {
			c.ResetPeriod = time.Hour
			c.SetRecovery(host.Recovery{Command: "run.exe", RebootMessage: "it crashed", Actions: []host.RecoveryAction{
				{Kind: host.RecoveryNone}, {Kind: host.RecoveryCommand}, {Kind: host.RecoveryOwnRestart}, {Kind: host.RecoveryReboot}}})
		})
		done := func(kind Kind, detail string) func() bool {
			return func() bool {
				return len(r.Journal().Entries(func(e Entry) bool { return e.Kind == kind && e.Detail == detail })) == 1
			}
		}
		for _, happens := range []func() bool{
			func() bool { return true }, done(KindExec, "run.exe"), func() bool { return r.serviceState("s") == host.ServiceRunning },
			done(KindReboot, "it crashed"),
		} {
			if r.serviceState("s") == host.ServiceStopped {
				r.requireNoError(r.Services.Start(r.ctx, "s"))
			}
			crash(r)
			r.awaitCondition(happens)
		}
	})
	t.Run("a stop while the restart waits does not call it off", func(t *testing.T) {
		r := start(t)
		crash(r)
		r.requireNoError(r.Services.Stop(r.ctx, "s"))
		r.clock.Step(time.Second)
		r.waitState("s", host.ServiceRunning)
	})
	t.Run("a service that was disabled meanwhile stays down", func(t *testing.T) {
		r := start(t)
		crash(r)
		r.installService("s", "idle", recovering, func(c *host.ServiceConfig) { c.StartType = host.StartDisabled })
		r.clock.Step(time.Second)
		r.awaitCondition(func() bool {
			return len(r.Journal().Entries(func(e Entry) bool { return strings.HasPrefix(e.Detail, "no restart of s") })) == 1
		})
		if r.serviceState("s") != host.ServiceStopped {
			t.Errorf("state %s", r.serviceState("s"))
		}
	})
	t.Run("a service that fails to start again is tried again until it is mended", func(t *testing.T) {
		r := start(t)
		restore := r.FailServiceStart("s", 3)
		crash(r)
		r.clock.Step(time.Second)
		r.awaitCondition(func() bool {
			s, _ := r.Service("s")
			return s.ExitCode == 3 && r.clock.HasWaiters()
		})
		restore()
		r.clock.Step(time.Minute)
		r.waitState("s", host.ServiceRunning)
	})
	t.Run("the crash of a dependency does not stop what depends on it", func(t *testing.T) {
		r := start(t)
		r.installService("d", "idle", func(c *host.ServiceConfig) { c.Dependencies = []string{"s"} })
		r.requireNoError(r.Services.Start(r.ctx, "d"))
		crash(r)
		if r.serviceState("d") != host.ServiceRunning {
			t.Errorf("state %s", r.serviceState("d"))
		}
	})
}

func TestServices(t *testing.T) {
	t.Run("a service with a delayed start starts two minutes after the others", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("now", "idle", func(c *host.ServiceConfig) { c.StartType = host.StartAutomatic })
		r.installService("late", "idle", func(c *host.ServiceConfig) { c.StartType, c.DelayedStart = host.StartAutomatic, true })
		first := r.BootID()
		_ = r.Power.Reboot(r.ctx, "test")
		r.awaitCondition(func() bool { return r.IsRunning() && r.BootID() != first })
		if r.serviceState("now") != host.ServiceRunning || r.serviceState("late") != host.ServiceStopped {
			t.Errorf("now is %s, late is %s", r.serviceState("now"), r.serviceState("late"))
		}
		r.clock.Step(2 * time.Minute)
		r.waitState("late", host.ServiceRunning)
	})
	t.Run("services that depend on each other do not start", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("a", "idle", func(c *host.ServiceConfig) { c.Dependencies = []string{"b"} })
		r.installService("b", "idle", func(c *host.ServiceConfig) { c.Dependencies = []string{"a"} })
		r.requireError(r.Services.Start(r.ctx, "a"), host.ErrDependency)
	})
	t.Run("a failed start keeps its exit code and can be mended", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("s", "idle")
		restore := r.FailServiceStart("S", 1067)
		if err := r.Services.Start(r.ctx, "s"); !errors.As(err, &failedStart{}) {
			t.Errorf("start: %v", err)
		}
		if s, _ := r.Service("s"); s.ExitCode != 1067 || s.State != host.ServiceStopped {
			t.Errorf("%+v", s)
		}
		restore()
		r.requireNoError(r.Services.Start(r.ctx, "s"))
	})
	t.Run("a damaged executable does not start", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.write(`C:\damaged.exe`, "half")
		r.installService("s", "damaged")
		r.requireError(r.Services.Start(r.ctx, "s"), ErrNotExecutable)
	})
	t.Run("a service sees its own environment and name", func(t *testing.T) {
		seen := make(chan *Process, 1)
		r := bootMachine(t, programs{"s": func(ctx context.Context, p *Process) int { seen <- p; <-ctx.Done(); return 0 }})
		r.installService("s", "s", func(c *host.ServiceConfig) {
			c.CommandLine, c.Environment = host.CommandLine(`C:\s.exe`, "--flag", "a b"), []string{"OWN=1", "path=C:\\own"}
		})
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		p := <-seen
		if p.Service != "s" || p.Environ["OWN"] != "1" || p.Environ["Path"] != `C:\own` || p.Args[1] != "a b" {
			t.Errorf("%q %q %q", p.Service, p.Environ, p.Args)
		}
	})
	t.Run("a service marked for deletion cannot be configured and goes when it stops", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("s", "idle")
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		r.requireError(r.Services.Delete(r.ctx, "s"), host.ErrInUse)
		s, _ := r.Service("s")
		r.requireError(r.Services.Configure(r.ctx, s.ServiceConfig), host.ErrInUse)
		r.requireNoError(r.Services.Stop(r.ctx, "s"))
		if _, exists := r.Service("s"); exists {
			t.Error("it is still there")
		}
	})
	t.Run("a second process begins when the program of the first has returned", func(t *testing.T) {
		free, begun := make(chan struct{}), make(chan int, 2)
		r := bootMachine(t, programs{"slow": func(_ context.Context, p *Process) int { begun <- p.PID; <-free; return 0 }})
		r.installService("s", "slow")
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		first := <-begun
		r.requireNoError(r.Processes.Kill(r.ctx, first))
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		select {
		case <-begun:
			t.Error("both run")
		default:
		}
		close(free)
		if second := <-begun; second == first {
			t.Error("the same process")
		}
	})
	t.Run("a program may use its host while it is stopped", func(t *testing.T) {
		r := bootMachine(t, programs{"s": func(ctx context.Context, p *Process) int {
			<-ctx.Done()
			// The program's own context is done.
			_, err := p.Host.Services.Query(context.Background())
			if err == nil {
				err = p.Host.Tree.MakeDirectory(context.Background(), `C:\last-words`, "")
			}
			if err != nil {
				return 1
			}
			return 0
		}})
		r.installService("s", "s")
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		r.requireNoError(r.Services.Stop(r.ctx, "s"))
		if s, _ := r.Service("s"); s.ExitCode != 0 {
			t.Errorf("exit code %d", s.ExitCode)
		}
	})
	t.Run("many callers at once neither deadlock nor start twice", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.installService("a", "idle")
		r.installService("b", "idle", func(c *host.ServiceConfig) { c.Dependencies = []string{"a"} })
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				name := []string{"a", "b"}[i%2]
				if i%4 < 2 {
					_ = r.Services.Start(r.ctx, name) // a dependency may be stopped in the meantime
				} else {
					_ = r.Services.Stop(r.ctx, name)
				}
			})
		}
		group.Wait()
		r.requireNoError(r.ctx.Err())
		count := 0
		for _, p := range r.RunningProcesses() {
			if p.Path == `C:\idle.exe` {
				count++
			}
		}
		running := map[host.ServiceState]int{host.ServiceRunning: 1}
		if want := running[r.serviceState("a")] + running[r.serviceState("b")]; count != want {
			t.Errorf("%d processes, want %d", count, want)
		}
	})
}

func TestContentStore_SharedByMachines(t *testing.T) {
	store := NewContentStore()
	payload := make([]byte, 1<<20)
	machines := make([]*Machine, 100)
	for i := range machines {
		machines[i] = New(Options{Name: fmt.Sprintf("win-%d", i), Contents: store})
		if err := machines[i].Drive().WriteFile(`C:\payload`, payload); err != nil {
			t.Fatal(err)
		}
	}
	first, err := machines[0].drive.resolveExisting(`C:\payload`, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		if other, err := m.drive.resolveExisting(`C:\payload`, false); err != nil || other.node.content != first.node.content {
			t.Fatalf("%s has its own copy (%v)", m.Name(), err)
		}
	}
}
