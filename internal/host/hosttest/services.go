package hosttest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// requireProgram returns the command of a program. On a machine without the program, the behavior is not run.
func (s *suite) requireProgram(words []string) []string {
	if len(words) == 0 {
		s.skipBehavior("the machine lacks the required program")
	}
	return words
}

// idleServiceConfig returns the configuration of a service that runs until it is stopped.
func (s *suite) idleServiceConfig(name string) host.ServiceConfig {
	return host.ServiceConfig{
		Name: name, DisplayName: "Contract test of " + name, Description: "Created by a test",
		CommandLine: host.CommandLine(s.requireProgram(s.machine.Programs.Idle)...), StartType: host.StartManual,
	}
}

func (s *suite) configureService(config host.ServiceConfig) {
	s.requireNoError(s.Services.Configure(s.ctx, config))
}

// start configures and starts a service.
func (s *suite) start(config host.ServiceConfig) host.Service {
	s.configureService(config)
	s.requireNoError(s.Services.Start(s.ctx, config.Name))
	return s.queryService(config.Name)
}

func (s *suite) queryService(name string) host.Service {
	list, err := s.Services.Query(s.ctx, name)
	s.requireNoError(err)
	if len(list) != 1 {
		s.Fatalf("service %s: got %d services, want 1", name, len(list))
	}
	return list[0]
}

// configureAndCompare configures a service and compares the stored configuration.
func (s *suite) configureAndCompare(config host.ServiceConfig) {
	s.configureService(config)
	if diff := cmp.Diff(config, s.queryService(config.Name).ServiceConfig); diff != "" {
		s.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func serviceBehaviors() []Behavior {
	return []Behavior{
		{"Services.Query", "a query omits missing services", func(s *suite) {
			s.configureService(s.idleServiceConfig(serviceOne))
			some, err := s.Services.Query(s.ctx, serviceTwo, serviceOne)
			s.requireNoError(err)
			expectEqual(s, "services", len(some), 1)
			expectEqual(s, "name", some[0].Name, serviceOne)
		}},
		{"Services.Query", "a query without names returns all services", func(s *suite) {
			s.configureService(s.idleServiceConfig(serviceOne))
			all, err := s.Services.Query(s.ctx)
			s.requireNoError(err)
			if len(all) < 2 {
				s.Errorf("the machine has only %d services", len(all))
			}
			found := slices.ContainsFunc(all, func(one host.Service) bool { return one.Name == serviceOne })
			expectEqual(s, "the new service is listed", found, true)
		}},
		{"Services.Query", "service names are case-insensitive and case-preserving", func(s *suite) {
			s.configureService(s.idleServiceConfig(serviceOne))
			expectEqual(s, "name", s.queryService(strings.ToUpper(serviceOne)).Name, serviceOne)
		}},
		{"Services.Query", "a service that was never started is stopped and has no process", func(s *suite) {
			s.configureService(s.idleServiceConfig(serviceOne))
			got := s.queryService(serviceOne)
			expectEqual(s, "state", got.State, host.ServiceStopped)
			expectEqual(s, "process", got.PID, 0)
			expectEqual(s, "running command line", got.RunningCommandLine, "")
		}},
		{"Services.Delete", "a deleted service no longer exists, and its name can be reused", func(s *suite) {
			s.configureService(s.idleServiceConfig(serviceOne))
			s.requireNoError(s.Services.Delete(s.ctx, serviceOne))
			left, err := s.Services.Query(s.ctx, serviceOne)
			s.requireNoError(err)
			expectEqual(s, "services left", len(left), 0)
			s.configureService(s.idleServiceConfig(serviceOne))
		}},
		{"Services.Delete", "deleting a missing object fails", func(s *suite) {
			s.requireError(s.Services.Delete(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Delete", "a running service is deleted only after its stop", func(s *suite) {
			s.start(s.idleServiceConfig(serviceOne))
			s.requireError(s.Services.Delete(s.ctx, serviceOne), host.ErrInUse)
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceRunning)
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			s.waitUntil("gone", func() bool { // deleted when the last handle is closed
				err := s.Services.Delete(s.ctx, serviceOne)
				return errors.Is(err, host.ErrNotExist) || err == nil
			})
			left, err := s.Services.Query(s.ctx, serviceOne)
			s.requireNoError(err)
			expectEqual(s, "services left", len(left), 0)
		}},
	}
}

func configurationBehaviors() []Behavior {
	return slices.Concat(keptConfigurationBehaviors(), changedConfigurationBehaviors())
}

func keptConfigurationBehaviors() []Behavior {
	return []Behavior{
		{"Services.Configure", "a query returns the configuration of a service", func(s *suite) { s.configureAndCompare(s.idleServiceConfig(serviceOne)) }},
		{"Services.Configure", "a second call updates the configuration in place", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			s.configureService(config)
			config.DisplayName, config.Description, config.StartType = "Another name", "Another", host.StartDisabled
			config.CommandLine += ` "an argument"`
			s.configureAndCompare(config)
			config.StartType, config.Description = host.StartAutomatic, ""
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "the command line is preserved literally", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.CommandLine = `"C:\Program Files\no such\program.exe" --a="b c" \\share\ "" x`
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "dependencies are stored, and removed again", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.Dependencies = []string{serviceTwo, "EventLog"}
			s.configureAndCompare(config)
			config.Dependencies = nil
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "the environment is stored, and removed again", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.Environment = []string{"ONE=1", `PATHS=C:\a b;C:\c`, "EMPTY="}
			s.configureAndCompare(config)
			config.Environment = nil
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "restart delays are stored, and removed again", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays = []time.Duration{time.Second, 5 * time.Second, time.Minute}
			config.ResetPeriod = 24 * time.Hour
			s.configureAndCompare(config)
			config.RestartDelays, config.ResetPeriod = nil, 0
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "every kind of recovery action is stored with command and message, and removed again", keepRecovery},
		{"Services.Configure", "the setting that a reported error counts as a crash is stored", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.ResetPeriod = time.Hour
			for _, counts := range []bool{false, true, false} {
				config.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart, Delay: time.Second}}, AfterErrors: counts})
				s.configureAndCompare(config)
			}
		}},
		{"Services.Configure", "a delayed start is stored, and removed again", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.StartType, config.DelayedStart = host.StartAutomatic, true
			s.configureAndCompare(config)
			config.DelayedStart = false
			s.configureAndCompare(config)
		}},
		{"Services.Configure", "a record of an earlier agent version always restores the same service", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Second, -1}, time.Hour
			s.configureService(config)
			once := s.queryService(serviceOne).ServiceConfig
			expectEqual(s, "the recovery is as recorded", once.FullRecovery().Equal(config.FullRecovery()), true)
			s.configureAndCompare(once)
		}},
	}
}

func keepRecovery(s *suite) {
	config := s.idleServiceConfig(serviceOne)
	config.ResetPeriod = time.Hour
	config.SetRecovery(host.Recovery{
		Actions: []host.RecoveryAction{
			{Kind: host.RecoveryRestart, Delay: time.Second}, {Kind: host.RecoveryCommand, Delay: time.Minute},
			{Kind: host.RecoveryReboot, Delay: time.Hour}, {Kind: host.RecoveryNone, Delay: time.Second},
		},
		Command: `C:\wmco-contract.exe "an argument"`, RebootMessage: "The contract suite says: Grüße",
	})
	s.configureAndCompare(config)
	config.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart}}, AfterErrors: true})
	s.configureAndCompare(config)
	config.SetRecovery(host.Recovery{})
	config.ResetPeriod = 0
	s.configureAndCompare(config)
}

func changedConfigurationBehaviors() []Behavior {
	return []Behavior{
		{"Services.SetStartType", "only the start type changes", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Second}, time.Hour
			config.Environment = []string{"ONE=1"}
			running := s.start(config)
			for _, start := range []host.StartType{host.StartAutomatic, host.StartDisabled, host.StartManual} {
				s.requireNoError(s.Services.SetStartType(s.ctx, strings.ToUpper(serviceOne), start))
				config.StartType = start
				after := s.queryService(serviceOne)
				if diff := cmp.Diff(config, after.ServiceConfig); diff != "" {
					s.Errorf("configuration (-want +got):\n%s", diff)
				}
				expectEqual(s, "process", after.PID, running.PID)
			}
		}},
		{"Services.SetStartType", "a missing service and an unknown start type are errors", func(s *suite) {
			s.requireError(s.Services.SetStartType(s.ctx, serviceOne, host.StartManual), host.ErrNotExist)
			s.configureService(s.idleServiceConfig(serviceOne))
			s.expectAnyError("no such start type", s.Services.SetStartType(s.ctx, serviceOne, "Sometimes"))
		}},
		{"Services.Configure", "an invalid configuration is rejected", func(s *suite) {
			for what, spoil := range map[string]func(*host.ServiceConfig){
				"no name":                 func(c *host.ServiceConfig) { c.Name = "" },
				"a backslash in the name": func(c *host.ServiceConfig) { c.Name = `wmco-contract\one` },
				"no command line":         func(c *host.ServiceConfig) { c.CommandLine = "" },
				"no such start type":      func(c *host.ServiceConfig) { c.StartType = "Sometimes" },
				"a dependency on itself":  func(c *host.ServiceConfig) { c.Dependencies = []string{c.Name} },
				"a variable without name": func(c *host.ServiceConfig) { c.Environment = []string{"=x"} },
				"no such recovery action": func(c *host.ServiceConfig) {
					c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: "Explode"}}})
				},
			} {
				config := s.idleServiceConfig(serviceOne)
				spoil(&config)
				s.expectAnyError(what, s.Services.Configure(s.ctx, config))
			}
		}},
	}
}

// startedBehaviors returns the effects of a configuration on the process of the service.
func startedBehaviors() []Behavior {
	return []Behavior{
		{"Services.Configure", "the program receives its arguments unchanged", func(s *suite) {
			awkward := []string{"", "a b", `quote"inside`, `C:\ends with\`, `back\\slashes`, "tab\there", "100%", "'x'"}
			account := s.runReportingService(awkward, nil)
			if diff := cmp.Diff(awkward, account.Arguments[max(0, len(account.Arguments)-len(awkward)):]); diff != "" {
				s.Errorf("arguments (-want +got):\n%s", diff)
			}
		}},
		{"Services.Configure", "the program receives the environment of its service", func(s *suite) {
			account := s.runReportingService(nil, []string{"WMCO_CONTRACT_ONE=1", `WMCO_CONTRACT_TWO=C:\a b;x=y`})
			for _, want := range []string{"WMCO_CONTRACT_ONE=1", `WMCO_CONTRACT_TWO=C:\a b;x=y`} {
				expectEqual(s, want, slices.Contains(account.Environment, want), true)
			}
		}},
		{"Services.Configure", "a running service keeps its command line until a restart", func(s *suite) {
			config := s.idleServiceConfig(serviceOne)
			before := config.CommandLine
			s.start(config)
			config.CommandLine += " again"
			s.configureService(config)
			got := s.queryService(serviceOne)
			expectEqual(s, "command line", got.CommandLine, config.CommandLine)
			expectEqual(s, "running command line", got.RunningCommandLine, before)
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			s.requireNoError(s.Services.Start(s.ctx, serviceOne))
			expectEqual(s, "running command line after a restart", s.queryService(serviceOne).RunningCommandLine, config.CommandLine)
		}},
	}
}
