package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// outcome is what a comparison of the host with the spec has come to.
type outcome struct {
	repairs []repair // that were done
	left    string   // what only the operator can do; empty when there is nothing
	failure *verb.Failure
	skipped bool // a verb is at work, or the host is being given back
	waits   bool // the node is on its way: it waits for its network, or for what the operator brings
	spec    *nodespec.NodeSpec
}

// repair is a step that was done.
type repair struct {
	name, reason string
	start        bool // it is a part of the node's start after a boot
}

// tried are the names of the steps that were done or have failed.
func (o outcome) tried() []string {
	var names []string
	for _, step := range o.repairs {
		names = append(names, step.name)
	}
	if o.failure != nil && o.failure.Step != "" {
		names = append(names, o.failure.Step)
	}
	return names
}

// examine compares the host with the spec and repairs what differs, unless a verb is at work or the host is being given back.
func (k *keeper) examine(ctx context.Context) (o outcome) {
	w, err := k.wanted(ctx, &o)
	if err == nil && len(w.steps) > 0 {
		err = k.repair(ctx, &o)
	}
	if err != nil {
		o.failure = failureOf("", err)
	}
	return o
}

// work is what the service may do now, and what that was planned with.
type work struct {
	steps []plan.Step
	facts plan.Facts
	spec  nodespec.NodeSpec
}

// wanted is the work to be done now. failed are the folders of releases that could not be installed.
func (k *keeper) wanted(ctx context.Context, o *outcome, failed ...string) (work, error) {
	o.left, o.skipped, o.waits = "", false, false
	spec, err := k.store.spec(ctx)
	if err != nil || spec == nil {
		return work{}, err
	}
	o.spec = spec
	k.booting = k.boot.lasts()
	facts, err := k.gather(ctx, spec)
	if err != nil {
		return work{}, err
	}
	if facts.Ledger.Removing {
		o.skipped = true
		return work{}, nil
	}
	p, left := plan.Repair(facts, *spec, failed...)
	steps, own, await := repairable(p)
	steps = k.boot.withoutWindows(k.network.heed(await, steps, *spec), *spec)
	steps = append(steps, k.network.again(steps, facts)...)
	if o.left = cmp.Or(own, left); o.left == "" {
		o.left = k.network.left()
	}
	o.waits = await != nil || len(p.Needs) > 0
	return work{steps, facts, *spec}, nil
}

// repair does the steps under the lock, with facts that were gathered under it.
func (k *keeper) repair(ctx context.Context, o *outcome) error {
	info, err := k.host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask Windows about the system: %w", err)
	}
	other, err := k.tryLock(ctx, verb.Service, info.BootID)
	if err != nil {
		return fmt.Errorf("take the lock %s: %w", nodespec.LockPath, err)
	}
	if other != nil {
		o.skipped = true // the verb that holds the lock brings everything in order itself
		return nil
	}
	defer k.unlock(ctx)
	r := &repairer{keeper: k, outcome: o, failed: map[string]bool{}}
	before := ""
	for round := 0; ; round++ {
		w, err := k.wanted(ctx, o, r.releases...)
		names := r.untried(w.steps)
		switch {
		case err != nil || len(names) == 0:
			return cmp.Or(r.err, err)
		case r.err != nil && (names == before || round == maxRounds):
			return r.err
		case names == before || round == maxRounds:
			return &verb.Failure{Reason: verb.ReasonStepFailed, Step: w.steps[0].Name, Message: "it was done and does not last: " + w.steps[0].Reason}
		}
		before = names
		if r.do(ctx, w); ctx.Err() != nil {
			return cmp.Or(r.err, ctx.Err())
		}
	}
}

// repairable are the steps of a plan up to where it waits for the network, without those that stop the service itself. left says what of
// those is left to the operator, if anything, and await which network the others wait for.
func repairable(p plan.Plan) (steps []plan.Step, left string, await *plan.AwaitNetwork) {
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
