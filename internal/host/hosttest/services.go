package hosttest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// program returns the command of a program. On a machine without the program, the behavior is not run.
func (s *suite) program(words []string) []string {
	if len(words) == 0 {
		s.notHere("the machine has no such program")
	}
	return words
}

// idle returns the configuration of a service that runs until it is stopped.
func (s *suite) idle(name string) host.ServiceConfig {
	return host.ServiceConfig{
		Name: name, DisplayName: "Contract test of " + name, Description: "Made by a test",
		CommandLine: host.CommandLine(s.program(s.machine.Programs.Idle)...), StartType: host.StartManual,
	}
}

func (s *suite) configure(config host.ServiceConfig) { s.must(s.Services.Configure(s.ctx, config)) }

// start configures and starts a service.
func (s *suite) start(config host.ServiceConfig) host.Service {
	s.configure(config)
	s.must(s.Services.Start(s.ctx, config.Name))
	return s.service(config.Name)
}

func (s *suite) service(name string) host.Service {
	list, err := s.Services.Query(s.ctx, name)
	s.must(err)
	if len(list) != 1 {
		s.Fatalf("service %s: got %d answers, want 1", name, len(list))
	}
	return list[0]
}

// kept configures a service and compares the stored configuration.
func (s *suite) kept(config host.ServiceConfig) {
	s.configure(config)
	if diff := cmp.Diff(config, s.service(config.Name).ServiceConfig); diff != "" {
		s.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func serviceBehaviors() []Behavior {
	return []Behavior{
		{"Services.Query", "a query leaves out what is not there", func(s *suite) {
			s.configure(s.idle(serviceOne))
			some, err := s.Services.Query(s.ctx, serviceTwo, serviceOne)
			s.must(err)
			is(s, "services", len(some), 1)
			is(s, "name", some[0].Name, serviceOne)
		}},
		{"Services.Query", "a query for none lists all", func(s *suite) {
			s.configure(s.idle(serviceOne))
			all, err := s.Services.Query(s.ctx)
			s.must(err)
			if len(all) < 2 {
				s.Errorf("a machine with %d services", len(all))
			}
			found := slices.ContainsFunc(all, func(one host.Service) bool { return one.Name == serviceOne })
			is(s, "the new one is among them", found, true)
		}},
		{"Services.Query", "names of services are compared without case, and shown as they were made", func(s *suite) {
			s.configure(s.idle(serviceOne))
			is(s, "name", s.service(strings.ToUpper(serviceOne)).Name, serviceOne)
		}},
		{"Services.Query", "a service that never ran is stopped and has no process", func(s *suite) {
			s.configure(s.idle(serviceOne))
			got := s.service(serviceOne)
			is(s, "state", got.State, host.ServiceStopped)
			is(s, "process", got.PID, 0)
			is(s, "running command line", got.RunningCommandLine, "")
		}},
		{"Services.Delete", "a deleted service is gone, and its name is free", func(s *suite) {
			s.configure(s.idle(serviceOne))
			s.must(s.Services.Delete(s.ctx, serviceOne))
			left, err := s.Services.Query(s.ctx, serviceOne)
			s.must(err)
			is(s, "services left", len(left), 0)
			s.configure(s.idle(serviceOne))
		}},
		{"Services.Delete", "what is not there cannot be deleted", func(s *suite) {
			s.fails(s.Services.Delete(s.ctx, serviceOne), host.ErrNotExist)
		}},
		{"Services.Delete", "a running service is not deleted before it stops", func(s *suite) {
			s.start(s.idle(serviceOne))
			s.fails(s.Services.Delete(s.ctx, serviceOne), host.ErrInUse)
			is(s, "state", s.service(serviceOne).State, host.ServiceRunning)
			s.must(s.Services.Stop(s.ctx, serviceOne))
			s.eventually("gone", func() bool { // deleted when the last handle is closed
				err := s.Services.Delete(s.ctx, serviceOne)
				return errors.Is(err, host.ErrNotExist) || err == nil
			})
			left, err := s.Services.Query(s.ctx, serviceOne)
			s.must(err)
			is(s, "services left", len(left), 0)
		}},
	}
}

func configurationBehaviors() []Behavior {
	return slices.Concat(keptConfigurationBehaviors(), changedConfigurationBehaviors())
}

func keptConfigurationBehaviors() []Behavior {
	return []Behavior{
		{"Services.Configure", "a service is what it was configured to be", func(s *suite) { s.kept(s.idle(serviceOne)) }},
		{"Services.Configure", "a configuration is changed in place", func(s *suite) {
			config := s.idle(serviceOne)
			s.configure(config)
			config.DisplayName, config.Description, config.StartType = "Another name", "Another", host.StartDisabled
			config.CommandLine += ` "an argument"`
			s.kept(config)
			config.StartType, config.Description = host.StartAutomatic, ""
			s.kept(config)
		}},
		{"Services.Configure", "the command line is kept to the letter", func(s *suite) {
			config := s.idle(serviceOne)
			config.CommandLine = `"C:\Program Files\no such\program.exe" --a="b c" \\share\ "" x`
			s.kept(config)
		}},
		{"Services.Configure", "dependencies are kept, and taken away again", func(s *suite) {
			config := s.idle(serviceOne)
			config.Dependencies = []string{serviceTwo, "EventLog"}
			s.kept(config)
			config.Dependencies = nil
			s.kept(config)
		}},
		{"Services.Configure", "the environment is kept, and taken away again", func(s *suite) {
			config := s.idle(serviceOne)
			config.Environment = []string{"ONE=1", `PATHS=C:\a b;C:\c`, "EMPTY="}
			s.kept(config)
			config.Environment = nil
			s.kept(config)
		}},
		{"Services.Configure", "restart delays are kept, and taken away again", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays = []time.Duration{time.Second, 5 * time.Second, time.Minute}
			config.ResetPeriod = 24 * time.Hour
			s.kept(config)
			config.RestartDelays, config.ResetPeriod = nil, 0
			s.kept(config)
		}},
		{"Services.Configure", "every kind of action after crashes is kept, with command and message, and taken away again", keepRecovery},
		{"Services.Configure", "whether a reported error counts as a crash is kept", func(s *suite) {
			config := s.idle(serviceOne)
			config.ResetPeriod = time.Hour
			for _, counts := range []bool{false, true, false} {
				config.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart, Delay: time.Second}}, AfterErrors: counts})
				s.kept(config)
			}
		}},
		{"Services.Configure", "a delayed start is kept, and taken away again", func(s *suite) {
			config := s.idle(serviceOne)
			config.StartType, config.DelayedStart = host.StartAutomatic, true
			s.kept(config)
			config.DelayedStart = false
			s.kept(config)
		}},
		{"Services.Configure", "the record of an earlier version of the agent restores the same service each time", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Second, -1}, time.Hour
			s.configure(config)
			once := s.service(serviceOne).ServiceConfig
			is(s, "the recovery is as recorded", once.FullRecovery().Equal(config.FullRecovery()), true)
			s.kept(once)
		}},
	}
}

func keepRecovery(s *suite) {
	config := s.idle(serviceOne)
	config.ResetPeriod = time.Hour
	config.SetRecovery(host.Recovery{
		Actions: []host.RecoveryAction{
			{Kind: host.RecoveryRestart, Delay: time.Second}, {Kind: host.RecoveryCommand, Delay: time.Minute},
			{Kind: host.RecoveryReboot, Delay: time.Hour}, {Kind: host.RecoveryNone, Delay: time.Second},
		},
		Command: `C:\wmco-contract.exe "an argument"`, RebootMessage: "The contract suite says: Grüße",
	})
	s.kept(config)
	config.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart}}, AfterErrors: true})
	s.kept(config)
	config.SetRecovery(host.Recovery{})
	config.ResetPeriod = 0
	s.kept(config)
}

func changedConfigurationBehaviors() []Behavior {
	return []Behavior{
		{"Services.SetStartType", "the start type changes, and nothing else", func(s *suite) {
			config := s.idle(serviceOne)
			config.RestartDelays, config.ResetPeriod = []time.Duration{time.Second}, time.Hour
			config.Environment = []string{"ONE=1"}
			running := s.start(config)
			for _, start := range []host.StartType{host.StartAutomatic, host.StartDisabled, host.StartManual} {
				s.must(s.Services.SetStartType(s.ctx, strings.ToUpper(serviceOne), start))
				config.StartType = start
				after := s.service(serviceOne)
				if diff := cmp.Diff(config, after.ServiceConfig); diff != "" {
					s.Errorf("configuration (-want +got):\n%s", diff)
				}
				is(s, "process", after.PID, running.PID)
			}
		}},
		{"Services.SetStartType", "a service that is not there, and a start type that Windows does not know", func(s *suite) {
			s.fails(s.Services.SetStartType(s.ctx, serviceOne, host.StartManual), host.ErrNotExist)
			s.configure(s.idle(serviceOne))
			s.refused("no such start type", s.Services.SetStartType(s.ctx, serviceOne, "Sometimes"))
		}},
		{"Services.Configure", "what the service control manager cannot keep is refused", func(s *suite) {
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
				config := s.idle(serviceOne)
				spoil(&config)
				s.refused(what, s.Services.Configure(s.ctx, config))
			}
		}},
	}
}

// startedBehaviors returns the effects of a configuration on the process of the service.
func startedBehaviors() []Behavior {
	return []Behavior{
		{"Services.Configure", "arguments reach the program as they were", func(s *suite) {
			awkward := []string{"", "a b", `quote"inside`, `C:\ends with\`, `back\\slashes`, "tab\there", "100%", "'x'"}
			account := s.account(awkward, nil)
			if diff := cmp.Diff(awkward, account.Arguments[max(0, len(account.Arguments)-len(awkward)):]); diff != "" {
				s.Errorf("arguments (-want +got):\n%s", diff)
			}
		}},
		{"Services.Configure", "a service's own environment reaches its program", func(s *suite) {
			account := s.account(nil, []string{"WMCO_CONTRACT_ONE=1", `WMCO_CONTRACT_TWO=C:\a b;x=y`})
			for _, want := range []string{"WMCO_CONTRACT_ONE=1", `WMCO_CONTRACT_TWO=C:\a b;x=y`} {
				is(s, want, slices.Contains(account.Environment, want), true)
			}
		}},
		{"Services.Configure", "a running service keeps its command line until it is restarted", func(s *suite) {
			config := s.idle(serviceOne)
			before := config.CommandLine
			s.start(config)
			config.CommandLine += " again"
			s.configure(config)
			got := s.service(serviceOne)
			is(s, "command line", got.CommandLine, config.CommandLine)
			is(s, "running command line", got.RunningCommandLine, before)
			s.must(s.Services.Stop(s.ctx, serviceOne))
			s.must(s.Services.Start(s.ctx, serviceOne))
			is(s, "running command line after a restart", s.service(serviceOne).RunningCommandLine, config.CommandLine)
		}},
	}
}
