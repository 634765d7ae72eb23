package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
)

// silentProbes probes a host with a server that accepts a connection and never responds.
type silentProbes struct {
	host.Probes
	clock *verbClock
}

func (p silentProbes) HTTPGet(ctx context.Context, _ string, _ []byte) (int, string, error) {
	p.clock.passWhileHanging(ctx)
	return 0, "", context.Cause(ctx)
}

// stepOfVerbs is the clock step while a command waits.
const stepOfVerbs = 10 * time.Second

// runStepping runs a command on a separate clock, which is stepped while the command waits. It returns the
// duration of the command.
func (r *rig) runStepping(args ...string) (agentapi.Line, time.Duration) {
	r.Helper()
	r.clock = r.stepping
	start, answer := r.stepping.Now(), make(chan agentapi.Line)
	go func() {
		line, _ := r.run(args...)
		answer <- line
	}()
	for {
		select {
		case line := <-answer:
			return line, r.stepping.Since(start)
		case <-r.stepping.idle:
			r.stepping.Step(stepOfVerbs)
		case <-r.ctx.Done():
			r.Fatal("the verb does not end")
		}
	}
}

// An unresponsive part of Windows must not keep a command, which holds the lock, from ending.
func TestCommand_EndsIfWindowsNeverResponds(t *testing.T) {
	t.Parallel()
	t.Run("a check that gets no answer has failed", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.overrideHost(func(h *host.Host) { h.Probes = silentProbes{h.Probes, r.stepping} })
		line, _ := r.runStepping("verify")
		if line.Type != agentapi.TypeResult {
			t.Fatalf("%s %v", line.Type, line.Failure)
		}
		for _, check := range line.Result.Checks {
			if check.Name == "KubeletHealthy" && (check.Passed || !strings.Contains(check.Message, timeouts.CheckTimeout.String())) {
				t.Errorf("got %+v", check)
			}
		}
	})
	t.Run("facts are waited for only so long", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		args := append([]string{"plan"}, r.sendSpec(r.fullSpec())...)
		r.overrideHost(func(h *host.Host) { h.Networks = timeoutNetworks{h.Networks} })
		if line, _ := r.run(args...); line.Type != agentapi.TypeResult {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("steps are waited for only so long", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.overrideHost(func(h *host.Host) { h.Networks = timeoutNetworks{h.Networks} })
		r.start().configureHost()
	})
}

// timeoutNetworks requires a deadline for its calls.
type timeoutNetworks struct{ hns }

// hns allows a method to have the name of the interface.
type hns = host.Networks

func (n timeoutNetworks) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	if limit, limited := ctx.Deadline(); !limited || time.Until(limit) > timeouts.FactsTimeout {
		return nil, errors.New("there is no limit")
	}
	return n.hns.Networks(ctx)
}

func (n timeoutNetworks) CreateEndpoint(ctx context.Context, network, name, address string) (host.HNSEndpoint, error) {
	if limit, limited := ctx.Deadline(); !limited || time.Until(limit) > timeouts.StepTimeout {
		return host.HNSEndpoint{}, errors.New("there is no limit")
	}
	return n.hns.CreateEndpoint(ctx, network, name, address)
}
