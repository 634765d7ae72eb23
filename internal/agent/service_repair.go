package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	steps, _, err := k.wanted(ctx, &o)
	if err == nil && len(steps) > 0 {
		err = k.repair(ctx, &o)
	}
	if err != nil {
		o.failure = failureOf("", err)
	}
	return o
}

// wanted are the steps that the service may do now, and the facts that they were planned with.
func (k *keeper) wanted(ctx context.Context, o *outcome) ([]plan.Step, plan.Facts, error) {
	o.left, o.skipped = "", false
	spec, err := k.store.spec(ctx)
	if err != nil || spec == nil {
		return nil, plan.Facts{}, err
	}
	facts, err := k.gather(ctx, spec)
	if err != nil {
		return nil, plan.Facts{}, err
	}
	if facts.Ledger.Removing {
		o.skipped = true
		return nil, facts, nil
	}
	steps, left, await := repairable(plan.Make(facts, *spec), facts)
	steps = k.boot.withoutWindows(k.network.heed(await, steps, *spec), *spec)
	if o.left = left; left == "" {
		o.left = k.network.left()
	}
	return steps, facts, nil
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
	before := ""
	for round := 0; ; round++ {
		steps, facts, err := k.wanted(ctx, o)
		names := stepNames(steps)
		if err != nil || len(steps) == 0 {
			return err
		}
		if names == before || round == maxRounds {
			return &verb.Failure{Reason: verb.ReasonStepFailed, Step: steps[0].Name, Message: "it was done and does not last: " + steps[0].Reason}
		}
		before = names
		if err := k.do(ctx, o, steps, facts); err != nil {
			return err
		}
	}
}

func stepNames(steps []plan.Step) string {
	var names []string
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return strings.Join(names, "\n")
}

func (k *keeper) do(ctx context.Context, o *outcome, steps []plan.Step, facts plan.Facts) error {
	e := &executor{agent: k.agent, facts: facts, payload: newIncoming(nodespec.NodeSpec{}, "")}
	for _, step := range steps {
		began := k.clock.Now()
		if err := e.do(ctx, step); err != nil {
			return failureOf(step.Name, err)
		}
		if advice := e.current.Detail; advice != "" {
			e.current.Detail = ""
			k.log.printf(ctx, "%s: %s", step.Name, advice)
			continue // it was tried and not done
		}
		o.repairs = append(o.repairs, repair{step.Name, step.Reason, k.boot.starting(step, k.watcher.spec)})
		k.log.printf(ctx, "%s, because %s (%s)", step.Name, step.Reason, k.clock.Since(began).Round(time.Millisecond))
	}
	return nil
}

// repairable are the steps of a plan that the service may do: all before the first that would restart the host, wait for the network or
// stop the service itself, without those that need files which are not on the host. left says what is left to the operator, if anything, and
// await which network the others wait for.
func repairable(p plan.Plan, facts plan.Facts) (steps []plan.Step, left string, await *plan.AwaitNetwork) {
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Reboots {
		return nil, "a restart of the host, because " + p.Steps[n-1].Reason, nil
	}
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
		case plan.InstallRelease:
			if lacking := lacking(o.Release, facts); lacking != "" {
				left = lacking + " of " + o.Release.Component + ", which is not on the host"
				continue
			}
		}
		steps = append(steps, step)
	}
	return steps, left, nil
}

// lacking is a file of a release that is nowhere on the host.
func lacking(release nodespec.Release, facts plan.Facts) string {
	for _, file := range release.Files {
		if _, there := facts.Payload[file.SHA256]; !there {
			return file.Name
		}
	}
	return ""
}
