package hosttest

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

const accountFile = Scratch + `\account.json`

// reporting returns the configuration of a service that writes its account. The file name follows the arguments.
func (s *suite) reporting(arguments []string) host.ServiceConfig {
	config := s.idle(serviceOne)
	words := slices.Concat(s.program(s.machine.Programs.Reporting), arguments, []string{accountFile})
	config.CommandLine = host.CommandLine(words...)
	return config
}

// account runs a reporting service and returns its account without the file name.
func (s *suite) account(arguments, environment []string) Account {
	config := s.reporting(arguments)
	config.Environment = environment
	s.start(config)
	account := s.readAccount()
	if n := len(account.Arguments); n > 0 {
		account.Arguments = account.Arguments[:n-1]
	}
	return account
}

// readAccount waits for the account of a started service.
func (s *suite) readAccount() Account {
	var account Account
	s.eventually("an account", func() bool {
		reader, err := s.Files.Open(s.ctx, accountFile)
		if err != nil {
			return false // missing, or being written
		}
		data, err := io.ReadAll(reader)
		return errors.Join(err, reader.Close()) == nil && json.Unmarshal(data, &account) == nil
	})
	return account
}

func startBehaviors() []Behavior {
	return []Behavior{
		{"Services.Start", "a started service runs, and starting it again is no error", func(s *suite) {
			config := s.idle(serviceOne)
			first := s.start(config)
			again := s.start(config)
			is(s, "state", first.State, host.ServiceRunning)
			is(s, "running command line", first.RunningCommandLine, config.CommandLine)
			is(s, "has a process", first.PID != 0, true)
			is(s, "process", again.PID, first.PID)
		}},
		{"Services.Start", "what is not there cannot be started", func(s *suite) {
			s.fails(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Start", "a disabled service does not start", func(s *suite) {
			config := s.idle(serviceOne)
			config.StartType = host.StartDisabled
			s.configure(config)
			s.refused("start", s.Services.Start(s.ctx, serviceOne))
			is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
		}},
		{"Services.Start", "a service whose program is not there does not start", func(s *suite) {
			config := s.idle(serviceOne)
			config.CommandLine = Scratch + `\none.exe`
			s.configure(config)
			s.fails(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
			is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
		}},
		{"Services.Start", "a service whose program is no executable does not start", func(s *suite) {
			s.write(Scratch+`\text.exe`, "this is a text")
			config := s.idle(serviceOne)
			config.CommandLine = Scratch + `\text.exe`
			s.configure(config)
			s.refused("start", s.Services.Start(s.ctx, serviceOne))
			is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
		}},
	}
}

func stopBehaviors() []Behavior {
	return []Behavior{
		{"Services.Stop", "a stopped service has no process any more, and stopping it again is no error", func(s *suite) {
			pid := s.start(s.idle(serviceOne)).PID
			for range 2 {
				s.must(s.Services.Stop(s.ctx, serviceOne))
				got := s.service(serviceOne)
				is(s, "state", got.State, host.ServiceStopped)
				is(s, "process", got.PID, 0)
				is(s, "exit code", got.ExitCode, 0)
				_, runs := s.processes()[pid]
				is(s, "the process runs", runs, false)
			}
		}},
		{"Services.Stop", "what is not there cannot be stopped", func(s *suite) {
			s.fails(s.Services.Stop(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Stop", "a stopped service starts again, as another process", func(s *suite) {
			config := s.idle(serviceOne)
			first := s.start(config).PID
			s.must(s.Services.Stop(s.ctx, serviceOne))
			second := s.start(config)
			is(s, "state", second.State, host.ServiceRunning)
			is(s, "has a process", second.PID != 0 && first != 0, true)
		}},
		{"Services.Stop", "a stopped service is not restarted by its recovery actions", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Millisecond}, time.Hour
			first := s.start(config).PID
			s.must(s.Processes.Kill(s.ctx, first))
			s.anotherProcess(first) // otherwise there is no restart for a stop to prevent
			s.must(s.Services.Stop(s.ctx, serviceOne))
			is(s, "state", s.service(serviceOne).State, host.ServiceStopped)
		}},
	}
}

// dependent configures the second service, which depends on the first, and returns the configuration of the first.
func (s *suite) dependent() host.ServiceConfig {
	two := s.idle(serviceTwo)
	two.Dependencies = []string{serviceOne}
	s.configure(two)
	return s.idle(serviceOne)
}

func dependencyBehaviors() []Behavior {
	return []Behavior{
		{"Services.Start", "a service starts what it depends on", func(s *suite) {
			s.configure(s.dependent())
			s.must(s.Services.Start(s.ctx, serviceTwo))
			is(s, "state of the dependency", s.service(serviceOne).State, host.ServiceRunning)
			is(s, "state of the dependent", s.service(serviceTwo).State, host.ServiceRunning)
		}},
		{"Services.Stop", "a service stops what depends on it", func(s *suite) {
			s.configure(s.dependent())
			s.must(s.Services.Start(s.ctx, serviceOne))
			s.must(s.Services.Start(s.ctx, serviceTwo))
			s.must(s.Services.Stop(s.ctx, serviceOne))
			is(s, "state of the dependency", s.service(serviceOne).State, host.ServiceStopped)
			is(s, "state of the dependent", s.service(serviceTwo).State, host.ServiceStopped)
		}},
		{"Services.Start", "a service does not start without what it depends on", func(s *suite) {
			s.dependent()
			s.fails(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
			is(s, "state", s.service(serviceTwo).State, host.ServiceStopped)
		}},
		{"Services.Start", "a service does not start when what it depends on cannot", func(s *suite) {
			one := s.dependent()
			one.StartType = host.StartDisabled
			s.configure(one)
			s.fails(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
			is(s, "state", s.service(serviceTwo).State, host.ServiceStopped)
		}},
	}
}

// anotherProcess waits until the first service runs in another process.
func (s *suite) anotherProcess(first int) {
	s.eventually("another process", func() bool {
		now := s.service(serviceOne)
		return now.State == host.ServiceRunning && now.PID != first
	})
}

func recoveryBehaviors() []Behavior {
	failing := func(s *suite) host.ServiceConfig {
		config := s.idle(serviceOne)
		config.CommandLine = host.CommandLine(s.program(s.machine.Programs.Failing)...)
		return config
	}
	return []Behavior{
		{"Services.Query", "a failed service without recovery actions stays stopped with its exit code", func(s *suite) {
			s.configure(failing(s))
			_ = s.Services.Start(s.ctx, serviceOne) // the result depends on the time until the failure
			s.eventually("stopped", func() bool { return s.service(serviceOne).State == host.ServiceStopped })
			is(s, "exit code", s.service(serviceOne).ExitCode, 7)
		}},
		{"Services.Query", "a killed service is seen to be stopped", func(s *suite) {
			s.must(s.Processes.Kill(s.ctx, s.start(s.idle(serviceOne)).PID))
			s.eventually("stopped", func() bool { return s.service(serviceOne).State == host.ServiceStopped })
		}},
		{"Services.Configure", "a killed service is restarted after its delay", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{10 * time.Millisecond}, time.Hour
			first := s.start(config).PID
			s.must(s.Processes.Kill(s.ctx, first))
			s.anotherProcess(first)
		}},
		{"Services.Configure", "the last restart delay counts for all later crashes", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Millisecond, 2 * time.Millisecond}, time.Hour
			pid := s.start(config).PID
			for range 4 {
				s.must(s.Processes.Kill(s.ctx, pid))
				s.anotherProcess(pid)
				pid = s.service(serviceOne).PID
			}
		}},
		{"Services.Configure", "a service that stops itself with an error is restarted too", func(s *suite) {
			config := failing(s)
			config.RestartDelays, config.ResetPeriod = []time.Duration{10 * time.Millisecond}, time.Hour
			s.configure(config)
			_ = s.Services.Start(s.ctx, serviceOne) // as above
			seen := map[int]bool{}
			s.eventually("a second process", func() bool {
				if pid := s.service(serviceOne).PID; pid != 0 {
					seen[pid] = true
				}
				return len(seen) > 1
			})
			config.StartType, config.RestartDelays = host.StartDisabled, nil
			s.configure(config) // ends the restart loop
		}},
	}
}
