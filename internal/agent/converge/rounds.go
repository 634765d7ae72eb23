package converge

import (
	"context"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// convergence creates plans from facts and runs them until nothing is left to do.
type convergence struct {
	execute.Executor
	gather     func(context.Context) (plan.Facts, error)
	createPlan func(plan.Facts) plan.Plan
	// inService is true for a node with pods, which must not be disrupted.
	inService bool
}

// newConvergence returns a convergence of the host to the spec, with the plans returned by planOf. The payload is the
// path of the sent payload.
func (h *Host) newConvergence(spec *nodespec.NodeSpec, payload string, planOf func(plan.Facts) plan.Plan) *convergence {
	return &convergence{
		Executor:   execute.Executor{Dependencies: h.Dependencies, Incoming: releases.NewIncoming(*spec, payload)},
		gather:     func(ctx context.Context) (plan.Facts, error) { return h.Source.Gather(ctx, spec) },
		createPlan: planOf,
	}
}

// isRefused reports whether a plan is refused because it disrupts the pods of the node. The host may have changed
// since the operator classified the plan as harmless: for example, crashed services may run again.
func (c *convergence) isRefused(p plan.Plan) bool { return c.inService && p.IsDisruptive() }

// run runs plans and returns the last plan, which has no steps or is refused. If restarted is true, the host restarts.
func (c *convergence) run(ctx context.Context) (left plan.Plan, restarted bool, err error) {
	var before plan.Plan
	for range execute.MaxRounds {
		if c.Facts, err = c.gather(ctx); err != nil {
			return plan.Plan{}, false, err
		}
		next := c.createPlan(c.Facts)
		switch {
		case len(next.Steps) == 0, c.isRefused(next):
			return next, false, nil
		case len(next.Steps) == 1 && next.Steps[0].Reboots:
			return next, true, c.restartHost(ctx, next)
		case isSamePlan(before, next):
			return next, false, c.notConvergingError(ctx, next.Steps[0])
		}
		before = next
		c.Answer.Plan(next)
		if err := c.RunSteps(ctx, next.Steps); err != nil {
			return next, false, err
		}
	}
	return before, false, c.notConvergingError(ctx, before.Steps[0])
}

// restartHost reports the result and then restarts the host: no output is possible afterwards.
func (c *convergence) restartHost(ctx context.Context, next plan.Plan) error {
	step := next.Steps[0]
	c.Answer.Plan(next)
	c.Answer.Step(agentapi.Step{Name: step.Name, Reason: step.Reason, Index: 1, Of: 1, State: agentapi.StepStarted})
	c.Answer.Rebooting(agentapi.Result{Facts: &c.Facts, Plan: &plan.Plan{Needs: next.Needs}})
	if err := c.Host.Power.Reboot(ctx, "Windows Machine Config Operator: "+step.Reason); err != nil {
		return state.FailureOf(step.Name, fmt.Errorf("restart the host: %w", err))
	}
	return nil
}

func isSamePlan(a, b plan.Plan) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y plan.Step) bool { return x.Name == y.Name && x.Reason == y.Reason })
}

// notConvergingError returns the failure for completed steps without a lasting effect.
func (c *convergence) notConvergingError(ctx context.Context, step plan.Step) error {
	if start, ok := step.Operation.(plan.StartService); ok {
		service := c.Facts.Services[start.Service]
		if service.State == host.ServiceStopped {
			return &agentapi.Failure{Reason: agentapi.ReasonServiceFailed, Step: step.Name, Message: fmt.Sprintf(
				"service %s exits immediately after its start with exit code %d; see %s on the host%s",
				start.Service, service.ExitCode, nodespec.LogDirectory(start.Service), hostutil.DescribeForeignRuntime(ctx, c.Host.Probes, start.Service))}
		}
	}
	return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Step: step.Name, Message: "the step succeeds but its effect does not last: " + step.Reason +
		"; another program on the host reverts it"}
}
