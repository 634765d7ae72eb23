package agent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// serve is the agent as a Windows service: it holds the host to the spec that the operator left there, until it is told to stop.
// It never restarts the host and does nothing that needs the operator. With nothing to repair it writes nothing.
func (a *agent) serve(ctx context.Context, p Process) int {
	log := newServiceLog(a, p.Stderr)
	a.answer.out = io.Discard // steps are told to an operator; the log has its own words
	k := &keeper{agent: a, log: log}
	log.printf(ctx, "agent %s runs as a service, process %d", a.version, a.host.Processes.Self())
	if p.Ready != nil {
		p.Ready()
	}
	k.loop(ctx)
	log.printf(context.WithoutCancel(ctx), "the service was told to stop")
	return 0
}

// keeper repairs drift.
type keeper struct {
	*agent
	log     *serviceLog
	states  string // of the node's services when they were last looked at
	trouble string // the last thing that the log has about what is not repaired
}

func (k *keeper) loop(ctx context.Context) {
	ticker := k.clock.NewTicker(DriftPoll)
	defer ticker.Stop()
	next := k.clock.Now()
	for {
		changed := k.servicesChanged(ctx)
		if now := k.clock.Now(); changed || !now.Before(next) {
			next = now.Add(DriftCheck)
			k.check(ctx)
			k.servicesChanged(ctx) // the repair's own changes are no drift
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// servicesChanged tells whether the state of a service of the node differs from the last look. It is cheap.
func (k *keeper) servicesChanged(ctx context.Context) bool {
	spec, err := k.store.spec(ctx)
	if err != nil || spec == nil || len(spec.Services) == 0 {
		return false
	}
	names := make([]string, len(spec.Services))
	for i, service := range spec.Services {
		names[i] = service.Name
	}
	services, err := k.host.Services.Query(ctx, names...)
	if err != nil {
		return false
	}
	var states strings.Builder
	for _, service := range services {
		fmt.Fprintf(&states, "%s %s %d %s\n", service.Name, service.State, service.PID, service.CommandLine)
	}
	changed := states.String() != k.states
	k.states = states.String()
	return changed
}

// check compares the host with the spec and repairs what differs, unless a verb is at work or the host is being given back.
func (k *keeper) check(ctx context.Context) {
	steps, _, err := k.wanted(ctx)
	if err == nil && len(steps) > 0 {
		err = k.repair(ctx)
	}
	if err != nil && ctx.Err() == nil {
		k.complain(ctx, "not repaired: "+err.Error())
	}
}

// complain writes to the log what is not repaired, once.
func (k *keeper) complain(ctx context.Context, trouble string) {
	if trouble != k.trouble {
		k.trouble = trouble
		k.log.printf(ctx, "%s", trouble)
	}
}

// wanted are the steps that the service may do now, and the facts that they were planned with.
func (k *keeper) wanted(ctx context.Context) ([]plan.Step, plan.Facts, error) {
	spec, err := k.store.spec(ctx)
	if err != nil || spec == nil {
		return nil, plan.Facts{}, err
	}
	facts, err := k.gather(ctx, spec)
	if err != nil || facts.Ledger.Removing {
		return nil, plan.Facts{}, err
	}
	steps, left := repairable(plan.Make(facts, *spec), facts)
	if left != "" {
		k.complain(ctx, "left to the operator: "+left)
	}
	return steps, facts, nil
}

// repair does the steps under the lock, with facts that were gathered under it.
func (k *keeper) repair(ctx context.Context) error {
	info, err := k.host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask Windows about the system: %w", err)
	}
	other, err := k.tryLock(ctx, verb.Service, info.BootID)
	if err != nil || other != nil {
		return err // the verb that holds the lock brings everything in order itself
	}
	defer k.unlock(ctx)
	before := ""
	for range maxRounds {
		steps, facts, err := k.wanted(ctx)
		names := stepNames(steps)
		if err != nil || len(steps) == 0 {
			return err
		}
		if names == before {
			return fmt.Errorf("%s was done and does not last: %s", steps[0].Name, steps[0].Reason)
		}
		before = names
		if err := k.do(ctx, steps, facts); err != nil {
			return err
		}
	}
	return nil
}

func stepNames(steps []plan.Step) string {
	var names []string
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return strings.Join(names, "\n")
}

func (k *keeper) do(ctx context.Context, steps []plan.Step, facts plan.Facts) error {
	e := &executor{agent: k.agent, facts: facts, payload: newIncoming(nodespec.NodeSpec{}, "")}
	for _, step := range steps {
		began := k.clock.Now()
		if err := e.do(ctx, step); err != nil {
			return failureOf(step.Name, err)
		}
		k.trouble = ""
		k.log.printf(ctx, "%s, because %s (%s)", step.Name, step.Reason, k.clock.Since(began).Round(time.Millisecond))
	}
	return nil
}

// repairable are the steps of a plan that the service may do: all before the first that would restart the host, wait for the network or
// stop the service itself, without those that need files which are not on the host. left says what is left to the operator, if anything.
func repairable(p plan.Plan, facts plan.Facts) (steps []plan.Step, left string) {
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Reboots {
		return nil, "a restart of the host, because " + p.Steps[n-1].Reason
	}
	for _, step := range p.Steps {
		switch o := step.Operation.(type) {
		case plan.AwaitNetwork:
			return steps, left
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
	return steps, left
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
