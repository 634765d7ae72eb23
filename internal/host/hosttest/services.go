package hosttest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// idle is the configuration of a service that runs until it is stopped.
func (s *suite) idle(name string) host.ServiceConfig {
	s.needs(s.can.ServiceProgram != nil, "running services")
	return host.ServiceConfig{
		Name: name, DisplayName: "Contract test", Description: "Made by a test",
		CommandLine: host.CommandLine(s.can.ServiceProgram...), StartType: host.StartManual,
	}
}

func testServices(t *testing.T, open func(*testing.T) *suite) {
	t.Run("a service is what it was configured to be", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		s.must(s.Services.Configure(s.ctx, config))
		got := s.service(serviceOne)
		if diff := cmp.Diff(config, got.ServiceConfig); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
		is(s, "state", got.State, host.ServiceStopped)
		config.DisplayName, config.StartType = "Another name", host.StartDisabled
		s.must(s.Services.Configure(s.ctx, config))
		if diff := cmp.Diff(config, s.service(serviceOne).ServiceConfig); diff != "" {
			t.Errorf("changed configuration (-want +got):\n%s", diff)
		}
	})
	t.Run("a query leaves out what is not there, and lists all when asked for none", func(t *testing.T) {
		s := open(t)
		s.must(s.Services.Configure(s.ctx, s.idle(serviceOne)))
		some, err := s.Services.Query(s.ctx, serviceOne, serviceTwo)
		s.must(err)
		is(s, "named services", len(some), 1)
		all, err := s.Services.Query(s.ctx)
		s.must(err)
		if len(all) < 2 {
			t.Errorf("a machine with %d services", len(all))
		}
	})
	t.Run("what is not there cannot be started, stopped or deleted", func(t *testing.T) {
		s := open(t)
		s.fails(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
		s.fails(s.Services.Stop(s.ctx, serviceOne), host.ErrNotExist)
		s.fails(s.Services.Delete(s.ctx, serviceOne), host.ErrNotExist)
	})
	t.Run("a running service is not deleted before it stops", func(t *testing.T) {
		s := open(t)
		s.must(s.Services.Configure(s.ctx, s.idle(serviceOne)))
		s.must(s.Services.Start(s.ctx, serviceOne))
		s.fails(s.Services.Delete(s.ctx, serviceOne), host.ErrInUse)
		is(s, "state", s.service(serviceOne).State, host.ServiceRunning)
		s.must(s.Services.Stop(s.ctx, serviceOne))
		s.gone(s.Services.Delete(s.ctx, serviceOne))
		left, err := s.Services.Query(s.ctx, serviceOne)
		s.must(err)
		is(s, "services left", len(left), 0)
	})
}

func testStarts(t *testing.T, open func(*testing.T) *suite) {
	t.Run("a service starts and stops, and twice is no error", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		s.must(s.Services.Configure(s.ctx, config))
		for range 2 {
			s.must(s.Services.Start(s.ctx, serviceOne))
			got := s.service(serviceOne)
			is(s, "state", got.State, host.ServiceRunning)
			is(s, "running command line", got.RunningCommandLine, config.CommandLine)
			is(s, "has a process", got.PID != 0, true)
		}
		for range 2 {
			s.must(s.Services.Stop(s.ctx, serviceOne))
			is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
		}
	})
	t.Run("a running service keeps its command line until it is restarted", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		before := config.CommandLine
		s.must(s.Services.Configure(s.ctx, config))
		s.must(s.Services.Start(s.ctx, serviceOne))
		config.CommandLine += " again"
		s.must(s.Services.Configure(s.ctx, config))
		got := s.service(serviceOne)
		is(s, "command line", got.CommandLine, config.CommandLine)
		is(s, "running command line", got.RunningCommandLine, before)
	})
	t.Run("a disabled service does not start", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		config.StartType = host.StartDisabled
		s.must(s.Services.Configure(s.ctx, config))
		if s.Services.Start(s.ctx, serviceOne) == nil {
			t.Error("it started")
		}
	})
	t.Run("a service whose program is not there does not start", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		config.CommandLine = Scratch + `\none.exe`
		s.must(s.Services.Configure(s.ctx, config))
		s.fails(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
		is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
	})
}

func testDependencies(t *testing.T, open func(*testing.T) *suite) {
	// dependent configures the second service and returns the first, on which it depends.
	dependent := func(s *suite) host.ServiceConfig {
		s.needs(s.can.Dependencies, "service dependencies")
		two := s.idle(serviceTwo)
		two.Dependencies = []string{serviceOne}
		s.must(s.Services.Configure(s.ctx, two))
		return s.idle(serviceOne)
	}
	t.Run("a service starts what it depends on, which stops it when it stops", func(t *testing.T) {
		s := open(t)
		one := dependent(s)
		s.must(s.Services.Configure(s.ctx, one))
		s.must(s.Services.Start(s.ctx, serviceTwo))
		is(s, "state of the dependency", s.service(serviceOne).State, host.ServiceRunning)
		s.must(s.Services.Stop(s.ctx, serviceOne))
		is(s, "state of the dependent", s.service(serviceTwo).State, host.ServiceStopped)
	})
	t.Run("a service does not start without what it depends on", func(t *testing.T) {
		s := open(t)
		dependent(s)
		s.fails(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
	})
	t.Run("a service does not start when what it depends on cannot", func(t *testing.T) {
		s := open(t)
		one := dependent(s)
		one.StartType = host.StartDisabled
		s.must(s.Services.Configure(s.ctx, one))
		s.fails(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
	})
}

func testRecovery(t *testing.T, open func(*testing.T) *suite) {
	crashing := func(s *suite) host.ServiceConfig {
		s.needs(s.can.CrashingProgram != nil, "crashing services")
		config := s.idle(serviceOne)
		config.CommandLine = host.CommandLine(s.can.CrashingProgram...)
		s.must(s.Services.Configure(s.ctx, config))
		return config
	}
	t.Run("a crashed service without a recovery action stays stopped with its exit code", func(t *testing.T) {
		s := open(t)
		crashing(s)
		_ = s.Services.Start(s.ctx, serviceOne) // whether it counts as started depends on how soon it crashes
		s.eventually("stopped", func() bool { return s.service(serviceOne).State == host.ServiceStopped })
		is(s, "exit code", s.service(serviceOne).ExitCode, 7)
	})
	t.Run("a killed service is restarted after its delay", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Recovery, "recovery actions")
		config := s.idle(serviceOne)
		config.RestartDelays, config.ResetPeriod = []time.Duration{10 * time.Millisecond}, time.Hour
		s.must(s.Services.Configure(s.ctx, config))
		s.must(s.Services.Start(s.ctx, serviceOne))
		first := s.service(serviceOne).PID
		s.must(s.Processes.Kill(s.ctx, first))
		s.eventually("another process", func() bool {
			now := s.service(serviceOne)
			return now.State == host.ServiceRunning && now.PID != first
		})
	})
	t.Run("a stopped service is not restarted", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Recovery, "recovery actions")
		config := s.idle(serviceOne)
		config.RestartDelays, config.ResetPeriod = []time.Duration{0}, time.Hour
		s.must(s.Services.Configure(s.ctx, config))
		s.must(s.Services.Start(s.ctx, serviceOne))
		s.must(s.Services.Stop(s.ctx, serviceOne))
		is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
	})
}

func testFilesInUse(t *testing.T, open func(*testing.T) *suite) {
	const program = Scratch + `\program.exe`
	running := func(t *testing.T) *suite {
		s := open(t)
		s.needs(s.can.FilesInUse, "files in use")
		config := s.idle(serviceOne)
		s.write(program, s.read(s.can.ServiceProgram[0]))
		config.CommandLine = host.CommandLine(append([]string{program}, s.can.ServiceProgram[1:]...)...)
		s.must(s.Services.Configure(s.ctx, config))
		s.must(s.Services.Start(s.ctx, serviceOne))
		return s
	}
	t.Run("a running executable is neither replaced nor removed", func(t *testing.T) {
		s := running(t)
		s.fails(s.Files.Write(s.ctx, program, bytes.NewBufferString("new"), host.WriteOptions{}), host.ErrInUse)
		s.fails(s.Files.Remove(s.ctx, program), host.ErrInUse)
		s.fails(s.Files.Remove(s.ctx, Scratch), host.ErrInUse)
		s.write(Scratch+`\new.exe`, "new")
		s.fails(s.Tree.Rename(s.ctx, Scratch+`\new.exe`, program), host.ErrInUse)
	})
	t.Run("a running executable may be renamed, which makes room for another", func(t *testing.T) {
		s := running(t)
		s.must(s.Tree.Rename(s.ctx, program, program+".old"))
		s.write(program, "new")
		s.fails(s.Files.Remove(s.ctx, program+".old"), host.ErrInUse)
		is(s, "state", s.service(serviceOne).State, host.ServiceRunning)
	})
	t.Run("a stopped executable is free", func(t *testing.T) {
		s := running(t)
		s.must(s.Services.Stop(s.ctx, serviceOne))
		s.must(s.Files.Remove(s.ctx, program))
	})
}
