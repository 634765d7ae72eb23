package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// silentProbes probe a host on which something takes a connection and never answers.
type silentProbes struct {
	host.Probes
	clock *verbClock
}

func (p silentProbes) HTTPGet(ctx context.Context, _ string, _ []byte) (int, string, error) {
	p.clock.passWhileHanging(ctx)
	return 0, "", context.Cause(ctx)
}

// stepOfVerbs is the time that passes at once while a verb waits.
const stepOfVerbs = 10 * time.Second

// runStepping runs a verb on a clock of its own, which it steps while the verb waits. It returns how long the verb took.
func (r *rig) runStepping(args ...string) (verb.Line, time.Duration) {
	r.Helper()
	r.clock = r.stepping
	began, answer := r.stepping.Now(), make(chan verb.Line)
	go func() {
		line, _ := r.run(args...)
		answer <- line
	}()
	for {
		select {
		case line := <-answer:
			return line, r.stepping.Since(began)
		case <-r.stepping.idle:
			r.stepping.Step(stepOfVerbs)
		case <-r.ctx.Done():
			r.Fatal("the verb does not end")
		}
	}
}

// What does not answer must not keep a verb, which holds the lock, from ending.
func TestPartsOfWindowsThatNeverAnswer(t *testing.T) {
	t.Parallel()
	t.Run("a check that gets no answer has failed", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		r.bend(func(h *host.Host) { h.Probes = silentProbes{h.Probes, r.stepping} })
		line, _ := r.runStepping("verify")
		if line.Type != verb.TypeResult {
			t.Fatalf("%s %v", line.Type, line.Failure)
		}
		for _, check := range line.Result.Checks {
			if check.Name == "KubeletHealthy" && (check.Passed || !strings.Contains(check.Message, timeouts.LimitCheck.String())) {
				t.Errorf("got %+v", check)
			}
		}
	})
	t.Run("facts are waited for only so long", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		args := append([]string{"plan"}, r.send(r.full())...)
		r.bend(func(h *host.Host) { h.Networks = impatientNetworks{h.Networks} })
		if line, _ := r.run(args...); line.Type != verb.TypeResult {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("steps are waited for only so long", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.bend(func(h *host.Host) { h.Networks = impatientNetworks{h.Networks} })
		r.start().configure()
	})
}

// impatientNetworks want a limit for how long they may take.
type impatientNetworks struct{ hns }

// hns lets a method of the interface have its name.
type hns = host.Networks

func (n impatientNetworks) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	if limit, limited := ctx.Deadline(); !limited || time.Until(limit) > timeouts.LimitFacts {
		return nil, errors.New("there is no limit")
	}
	return n.hns.Networks(ctx)
}

func (n impatientNetworks) CreateEndpoint(ctx context.Context, network, name, address string) (host.HNSEndpoint, error) {
	if limit, limited := ctx.Deadline(); !limited || time.Until(limit) > timeouts.LimitStep {
		return host.HNSEndpoint{}, errors.New("there is no limit")
	}
	return n.hns.CreateEndpoint(ctx, network, name, address)
}
