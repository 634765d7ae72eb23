package hosttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func testSystem(t *testing.T, open func(*testing.T) *suite) {
	t.Run("the machine says what it is", func(t *testing.T) {
		s := open(t)
		info, err := s.System.Info(s.ctx)
		s.must(err)
		if !strings.HasPrefix(info.Product, "Windows") || info.HostName == "" || info.MachineID == "" || info.BootID == "" ||
			info.BootTime.IsZero() || strings.Count(info.Version, ".") != 2 || len(info.Addresses) == 0 ||
			info.MemoryBytes <= 0 || info.FreeDiskBytes <= 0 {
			t.Errorf("incomplete: %+v", info)
		}
		again, err := s.System.Info(s.ctx)
		s.must(err)
		is(s, "boot ID", again.BootID, info.BootID)
	})
	t.Run("a feature that Windows does not have is unknown", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Features, "optional features")
		state, err := s.Features.State(s.ctx, "wmco-contract-feature")
		s.must(err)
		is(s, "state", state, host.FeatureUnknown)
		s.fails(s.Features.Enable(s.ctx, "wmco-contract-feature"), host.ErrNotExist)
		state, err = s.Features.State(s.ctx, "Containers")
		s.must(err)
		if state == host.FeatureUnknown {
			t.Error("this Windows has no containers")
		}
	})
	t.Run("nobody answers on a port that nobody listens on", func(t *testing.T) {
		s := open(t)
		if status, _, err := s.Probes.HTTPGet(s.ctx, "http://127.0.0.1:1/healthz"); err == nil {
			t.Errorf("answer with status %d", status)
		}
		if _, err := s.Probes.ContainerRuntime(s.ctx, "npipe://./pipe/wmco-contract"); err == nil {
			t.Error("a container runtime answers")
		}
	})
	t.Run("an operation whose context is done does nothing", func(t *testing.T) {
		s := open(t)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if err := s.Environment.Set(ctx, variable, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("set: %v", err)
		}
	})
}

func testEnvironment(t *testing.T, open func(*testing.T) *suite) {
	t.Run("a variable is set, read without case, and taken away", func(t *testing.T) {
		s := open(t)
		s.must(s.Environment.Set(s.ctx, variable, "one"))
		s.must(s.Environment.Set(s.ctx, strings.ToLower(variable), "two"))
		values, err := s.Environment.Get(s.ctx)
		s.must(err)
		found := map[string]string{}
		for name, value := range values {
			if strings.EqualFold(name, variable) {
				found[name] = value
			}
		}
		if len(found) != 1 || !slices.Contains([]string{found[variable], found[strings.ToLower(variable)]}, "two") {
			t.Errorf("variables: %v", found)
		}
		s.must(s.Environment.Unset(s.ctx, variable))
		s.must(s.Environment.Unset(s.ctx, variable))
		values, err = s.Environment.Get(s.ctx)
		s.must(err)
		if _, there := values[variable]; there {
			t.Error("it is still there")
		}
	})
}

func testFirewall(t *testing.T, open func(*testing.T) *suite) {
	find := func(s *suite) []host.FirewallRule {
		rules, err := s.Firewall.Rules(s.ctx)
		s.must(err)
		return slices.DeleteFunc(rules, func(r host.FirewallRule) bool { return r.Name != ruleName })
	}
	t.Run("a rule is made, replaced and deleted", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Firewall, "the firewall")
		rule := host.FirewallRule{Name: ruleName, DisplayName: "Contract test", Protocol: "TCP", LocalPort: 47001, Enabled: true, Allow: true}
		for _, port := range []int{47001, 47002} {
			rule.LocalPort = port
			s.must(s.Firewall.SetRule(s.ctx, rule))
			if got := find(s); len(got) != 1 || got[0] != rule {
				t.Errorf("got %v, want %v", got, rule)
			}
		}
		s.must(s.Firewall.DeleteRule(s.ctx, ruleName))
		is(s, "rules left", len(find(s)), 0)
		s.fails(s.Firewall.DeleteRule(s.ctx, ruleName), host.ErrNotExist)
	})
}

func testProcesses(t *testing.T, open func(*testing.T) *suite) {
	list := func(s *suite) map[int]host.Process {
		all, err := s.Processes.List(s.ctx)
		s.must(err)
		byID := map[int]host.Process{}
		for _, p := range all {
			byID[p.PID] = p
		}
		return byID
	}
	t.Run("the caller is in the list", func(t *testing.T) {
		s := open(t)
		if _, there := list(s)[s.Processes.Self()]; !there {
			t.Errorf("process %d is missing", s.Processes.Self())
		}
	})
	t.Run("the process of a service is in the list until it is killed", func(t *testing.T) {
		s := open(t)
		config := s.idle(serviceOne)
		s.must(s.Services.Configure(s.ctx, config))
		s.must(s.Services.Start(s.ctx, serviceOne))
		pid := s.service(serviceOne).PID
		is(s, "path", strings.ToLower(list(s)[pid].Path), strings.ToLower(s.can.ServiceProgram[0]))
		for range 2 {
			s.must(s.Processes.Kill(s.ctx, pid))
		}
		if _, there := list(s)[pid]; there {
			t.Error("it is still there")
		}
		s.eventually("stopped", func() bool { return s.service(serviceOne).State == host.ServiceStopped })
	})
}
