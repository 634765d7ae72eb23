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

// reportingServiceConfig returns the configuration of a service that writes its account. The file name follows the
// arguments.
func (s *suite) reportingServiceConfig(arguments []string) host.ServiceConfig {
	config := s.idleServiceConfig(serviceOne)
	words := slices.Concat(s.requireProgram(s.machine.Programs.Reporting), arguments, []string{accountFile})
	config.CommandLine = host.CommandLine(words...)
	return config
}

// runReportingService runs a reporting service and returns its account without the file name.
func (s *suite) runReportingService(arguments, environment []string) Account {
	config := s.reportingServiceConfig(arguments)
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
	s.waitUntil("an account", func() bool {
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
			config := s.idleServiceConfig(serviceOne)
			first := s.start(config)
			again := s.start(config)
			expectEqual(s, "state", first.State, host.ServiceRunning)
			expectEqual(s, "running command line", first.RunningCommandLine, config.CommandLine)
			expectEqual(s, "has a process", first.PID != 0, true)
			expectEqual(s, "process", again.PID, first.PID)
		}},
		{"Services.Start", "starting a missing service fails", func(s *suite) {
			s.requireError(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Start", "starting a disabled service fails", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.StartType = host.StartDisabled
			s.configureService(config)
			s.expectAnyError("start", s.Services.Start(s.ctx, serviceOne))
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceStopped)
		}},
		{"Services.Start", "starting a service with a missing program fails", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.CommandLine = Scratch + `\none.exe`
			s.configureService(config)
			s.requireError(s.Services.Start(s.ctx, serviceOne), host.ErrNotExist)
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceStopped)
		}},
		{"Services.Start", "starting a service with a program that is not executable fails", func(s *suite) {
			s.write(Scratch+`\text.exe`, "this is a text")
			config := s.idleServiceConfig(serviceOne)
			config.CommandLine = Scratch + `\text.exe`
			s.configureService(config)
			s.expectAnyError("start", s.Services.Start(s.ctx, serviceOne))
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceStopped)
		}},
	}
}

func stopBehaviors() []Behavior {
	return []Behavior{
		{"Services.Stop", "a stopped service has no process, and stopping it again is no error", func(s *suite) {
			pid := s.start(s.idleServiceConfig(serviceOne)).PID
			for range 2 {
				s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
				got := s.queryService(serviceOne)
				expectEqual(s, "state", got.State, host.ServiceStopped)
				expectEqual(s, "process", got.PID, 0)
				expectEqual(s, "exit code", got.ExitCode, 0)
				_, runs := s.processesByID()[pid]
				expectEqual(s, "the process exists", runs, false)
			}
		}},
		{"Services.Stop", "stopping a missing service fails", func(s *suite) {
			s.requireError(s.Services.Stop(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Stop", "a stopped service can be started again in another process", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			first := s.start(config).PID
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			second := s.start(config)
			expectEqual(s, "state", second.State, host.ServiceRunning)
			expectEqual(s, "has a process", second.PID != 0 && first != 0, true)
		}},
		{"Services.Stop", "recovery actions do not restart a stopped service", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Millisecond}, time.Hour
			first := s.start(config).PID
			s.requireNoError(s.Processes.Kill(s.ctx, first))
			s.waitForNewProcess(first) // otherwise there is no restart for a stop to prevent
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceStopped)
		}},
	}
}

// configureDependent configures the second service, which depends on the first, and returns the configuration of the
// first.
func (s *suite) configureDependent() host.ServiceConfig {
	two := s.idleServiceConfig(serviceTwo)
	two.Dependencies = []string{serviceOne}
	s.configureService(two)
	return s.idleServiceConfig(serviceOne)
}

func dependencyBehaviors() []Behavior {
	return []Behavior{
		{"Services.Start", "the start of a service starts its dependencies", func(s *suite) {
			s.configureService(s.configureDependent())
			s.requireNoError(s.Services.Start(s.ctx, serviceTwo))
			expectEqual(s, "state of the dependency", s.queryService(serviceOne).State, host.ServiceRunning)
			expectEqual(s, "state of the dependent", s.queryService(serviceTwo).State, host.ServiceRunning)
		}},
		{"Services.Stop", "the stop of a service stops its dependents", func(s *suite) {
			s.configureService(s.configureDependent())
			s.requireNoError(s.Services.Start(s.ctx, serviceOne))
			s.requireNoError(s.Services.Start(s.ctx, serviceTwo))
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			expectEqual(s, "state of the dependency", s.queryService(serviceOne).State, host.ServiceStopped)
			expectEqual(s, "state of the dependent", s.queryService(serviceTwo).State, host.ServiceStopped)
		}},
		{"Services.Start", "starting a service with a missing dependency fails", func(s *suite) {
			s.configureDependent()
			s.requireError(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
			expectEqual(s, "state", s.queryService(serviceTwo).State, host.ServiceStopped)
		}},
		{"Services.Start", "starting a service fails if a dependency cannot start", func(s *suite) {
			one := s.configureDependent()
			one.StartType = host.StartDisabled
			s.configureService(one)
			s.requireError(s.Services.Start(s.ctx, serviceTwo), host.ErrDependency)
			expectEqual(s, "state", s.queryService(serviceTwo).State, host.ServiceStopped)
		}},
	}
}

// waitForNewProcess waits until the first service runs in another process.
func (s *suite) waitForNewProcess(first int) {
	s.waitUntil("another process", func() bool {
		now := s.queryService(serviceOne)
		return now.State == host.ServiceRunning && now.PID != first
	})
}

func recoveryBehaviors() []Behavior {
	failing := func(s *suite) host.ServiceConfig {
		config := s.idleServiceConfig(serviceOne)
		config.CommandLine = host.CommandLine(s.requireProgram(s.machine.Programs.Failing)...)
		return config
	}
	return []Behavior{
		{"Services.Query", "a failed service without recovery actions stays stopped and reports its exit code", func(s *suite) {
			s.configureService(failing(s))
			_ = s.Services.Start(s.ctx, serviceOne) // the result depends on the time until the failure
			s.waitUntil("stopped", func() bool { return s.queryService(serviceOne).State == host.ServiceStopped })
			expectEqual(s, "exit code", s.queryService(serviceOne).ExitCode, 7)
		}},
		{"Services.Query", "a killed service is reported as stopped", func(s *suite) {
			s.requireNoError(s.Processes.Kill(s.ctx, s.start(s.idleServiceConfig(serviceOne)).PID))
			s.waitUntil("stopped", func() bool { return s.queryService(serviceOne).State == host.ServiceStopped })
		}},
		{"Services.Configure", "a killed service is restarted after the restart delay", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{10 * time.Millisecond}, time.Hour
			first := s.start(config).PID
			s.requireNoError(s.Processes.Kill(s.ctx, first))
			s.waitForNewProcess(first)
		}},
		{"Services.Configure", "the last restart delay applies to all later crashes", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Millisecond, 2 * time.Millisecond}, time.Hour
			pid := s.start(config).PID
			for range 4 {
				s.requireNoError(s.Processes.Kill(s.ctx, pid))
				s.waitForNewProcess(pid)
				pid = s.queryService(serviceOne).PID
			}
		}},
		{"Services.Configure", "a service that stops with an error is also restarted", func(s *suite) {
			config := failing(s)
			config.RestartDelays, config.ResetPeriod = []time.Duration{10 * time.Millisecond}, time.Hour
			s.configureService(config)
			_ = s.Services.Start(s.ctx, serviceOne) // as above
			seen := map[int]bool{}
			s.waitUntil("a second process", func() bool {
				if pid := s.queryService(serviceOne).PID; pid != 0 {
					seen[pid] = true
				}
				return len(seen) > 1
			})
			config.StartType, config.RestartDelays = host.StartDisabled, nil
			s.configureService(config) // ends the restart loop
		}},
	}
}
