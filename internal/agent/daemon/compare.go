package daemon

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// compareHost compares the host with the spec and repairs drift, unless an agent command runs or the host is being
// restored.
func (k *driftRepairer) compareHost(ctx context.Context) (o report.Outcome) {
	w, err := k.planWork(ctx, &o)
	if err == nil && len(w.steps) > 0 {
		err = k.repairDrift(ctx, &o)
	}
	if err != nil {
		o.Failure = state.FailureOf("", err)
	}
	return o
}

// work is the work that the service may do now, with its planning input.
type work struct {
	steps []plan.Step
	facts plan.Facts
	spec  nodespec.NodeSpec
}

// planWork returns the pending work. Failed contains the directories of releases that could not be installed.
func (k *driftRepairer) planWork(ctx context.Context, o *report.Outcome, failed ...string) (work, error) {
	o.Left, o.Skipped, o.Waits = "", false, false
	spec, err := k.Records.Spec(ctx)
	if err != nil || spec == nil {
		return work{}, err
	}
	o.Spec = spec
	k.Source.Booting = k.boot.IsStarting()
	found, err := k.Source.Gather(ctx, spec)
	if err != nil {
		return work{}, err
	}
	if found.Ledger.Removing {
		o.Skipped = true
		return work{}, nil
	}
	p, left := plan.Repair(found, *spec, failed...)
	steps, own, await := repairableSteps(p)
	steps = k.boot.WithoutWindows(k.network.DeferSteps(await, steps, *spec), *spec)
	steps = append(steps, k.network.RestartSteps(steps, found)...)
	if o.Left = cmp.Or(own, left); o.Left == "" {
		o.Left = k.network.DescribeMissing()
	}
	o.Waits = await != nil || len(p.Needs) > 0
	return work{steps, found, *spec}, nil
}

// repairDrift runs the steps under the lock, with facts gathered under the lock.
func (k *driftRepairer) repairDrift(ctx context.Context, o *report.Outcome) error {
	info, err := k.Host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("query Windows system information: %w", err)
	}
	release, err := k.Lock.Try(ctx, agentapi.Service, info.BootID)
	if err != nil {
		return err
	}
	if release == nil {
		o.Skipped = true // the command that holds the lock repairs everything itself
		return nil
	}
	defer release()
	r := &repairRun{driftRepairer: k, outcome: o, failed: map[string]bool{}}
	before := ""
	for round := 0; ; round++ {
		w, err := k.planWork(ctx, o, r.releases...)
		names := r.pendingStepNames(w.steps)
		switch {
		case err != nil || len(names) == 0:
			return cmp.Or(r.err, err)
		case r.err != nil && (names == before || round == execute.MaxRounds):
			return r.err
		case names == before || round == execute.MaxRounds:
			return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Step: w.steps[0].Name, Message: "the step succeeds but its effect does not last: " + w.steps[0].Reason}
		}
		before = names
		if r.runSteps(ctx, w); ctx.Err() != nil {
			return cmp.Or(r.err, ctx.Err())
		}
	}
}

// repairableSteps returns the steps of a plan up to the wait for the network, without steps that stop the service
// itself. Left describes a skipped stop that only the operator can do. Await is the network that later steps
// wait for.
func repairableSteps(p plan.Plan) (steps []plan.Step, left string, await *plan.AwaitNetwork) {
	for _, step := range p.Steps {
		switch o := step.Operation.(type) {
		case plan.AwaitNetwork:
			return steps, left, &o
		case plan.StopService:
			if strings.EqualFold(o.Service, nodespec.ServiceAgent) {
				left = step.Name + ", because " + step.Reason
				continue
			}
		case plan.StartService:
			if strings.EqualFold(o.Service, nodespec.ServiceAgent) {
				continue
			}
		}
		steps = append(steps, step)
	}
	return steps, left, nil
}
