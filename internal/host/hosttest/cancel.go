package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// cancelBehaviors returns tests that an operation with a done context does nothing. Power.Reboot is excluded, because
// an incorrect implementation would restart the machine.
func cancelBehaviors() []Behavior {
	const sentence = "an operation with a done context changes nothing"
	calls := []struct {
		operation string
		call      func(s *suite, ctx context.Context) error
	}{
		{"System.SetHostName", func(s *suite, ctx context.Context) error {
			return s.System.SetHostName(ctx, "wmco-contract")
		}},
		{"Features.Enable", func(s *suite, ctx context.Context) error { return s.Features.Enable(ctx, quickFeature) }},
		{"Services.Configure", func(s *suite, ctx context.Context) error {
			return s.Services.Configure(ctx, s.idleServiceConfig(serviceOne))
		}},
		{"Services.Start", func(s *suite, ctx context.Context) error {
			s.configureService(s.idleServiceConfig(serviceOne))
			return s.Services.Start(ctx, serviceOne)
		}},
		{"Services.Stop", func(s *suite, ctx context.Context) error {
			s.start(s.idleServiceConfig(serviceOne))
			return s.Services.Stop(ctx, serviceOne)
		}},
		{"Services.Delete", func(s *suite, ctx context.Context) error {
			s.configureService(s.idleServiceConfig(serviceOne))
			return s.Services.Delete(ctx, serviceOne)
		}},
		{"Files.Write", func(s *suite, ctx context.Context) error {
			return s.Files.Write(ctx, file, strings.NewReader("x"), host.WriteOptions{})
		}},
		{"Files.Remove", func(s *suite, ctx context.Context) error { return s.Files.Remove(ctx, Scratch) }},
		{"Tree.MakeDirectory", func(s *suite, ctx context.Context) error {
			return s.Tree.MakeDirectory(ctx, testDirectory, host.AccessInherited)
		}},
		{"Environment.Set", func(s *suite, ctx context.Context) error { return s.Environment.Set(ctx, variable, "x") }},
		{"Firewall.SetRule", func(s *suite, ctx context.Context) error { return s.Firewall.SetRule(ctx, firewallRule()) }},
		{"Roots.Add", func(s *suite, ctx context.Context) error {
			a, _ := s.borrowRoots()
			defer func() { expectEqual(s, "in the store", s.countTrusted(a), 0) }()
			return s.Roots.Add(ctx, a)
		}},
		{"Routes.Add", func(s *suite, ctx context.Context) error {
			s.borrowRoutes()
			defer func() { expectEqual(s, "the route", s.hasRoute(routeTo), false) }()
			return s.Routes.Add(ctx, routeTo)
		}},
		{"Processes.Kill", func(s *suite, ctx context.Context) error {
			return s.Processes.Kill(ctx, s.start(s.idleServiceConfig(serviceOne)).PID)
		}},
	}
	behaviors := make([]Behavior, 0, len(calls))
	for _, each := range calls {
		behaviors = append(behaviors, Behavior{each.operation, sentence, func(s *suite) {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			s.requireError(each.call(s, ctx), context.Canceled)
			s.checkUnchanged(each.operation)
		}})
	}
	return behaviors
}

// checkUnchanged checks that the operation has changed nothing.
func (s *suite) checkUnchanged(operation string) {
	services, err := s.Services.Query(s.ctx, serviceOne)
	s.requireNoError(err)
	state := host.ServiceState("")
	if len(services) == 1 {
		state = services[0].State
	}
	want := map[string]host.ServiceState{
		"Services.Start": host.ServiceStopped, "Services.Delete": host.ServiceStopped,
		"Services.Stop": host.ServiceRunning, "Processes.Kill": host.ServiceRunning,
	}
	expectEqual(s, "state of the service", state, want[operation])
	entries, err := s.Files.ReadDir(s.ctx, Scratch)
	s.requireNoError(err)
	expectEqual(s, "entries", len(entries), 0)
	expectEqual(s, "variables", len(s.listVariables()), 0)
}
