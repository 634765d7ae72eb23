package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// readSpec is the NodeSpec that came with the verb.
func (a *agent) readSpec(ctx context.Context, path string) (nodespec.NodeSpec, error) {
	data, err := a.store.read(ctx, path)
	if err != nil {
		return nodespec.NodeSpec{}, err
	}
	if data == nil {
		return nodespec.NodeSpec{}, invalidInput("the NodeSpec " + path + " is not on the host")
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nodespec.NodeSpec{}, invalidInput(path + ": " + err.Error())
	}
	return spec, nil
}

func (a *agent) tellPlan(ctx context.Context, in input) error {
	spec, err := a.readSpec(ctx, in.spec)
	if err != nil {
		return err
	}
	facts, err := a.gather(ctx, &spec)
	if err != nil {
		return err
	}
	p := plan.Make(facts, spec)
	a.answer.result(verb.Result{Facts: &facts, Plan: &p})
	return nil
}

// apply brings the host to the spec.
func (a *agent) apply(ctx context.Context, in input) error {
	spec, err := a.readSpec(ctx, in.spec)
	if err != nil {
		return err
	}
	if err := a.keepFallback(ctx, in.fallback, spec); err != nil {
		return err
	}
	c, left, err := a.bring(ctx, spec, in.payload)
	if err != nil || c == nil {
		return err
	}
	a.answer.result(verb.Result{Facts: &c.facts, Plan: &left})
	return nil
}

// bring brings the host to the spec, with the facts as they are then. It returns nothing when the host restarts: the next verb goes on.
func (a *agent) bring(ctx context.Context, spec nodespec.NodeSpec, payload string) (*convergence, plan.Plan, error) {
	if err := a.begin(ctx, spec); err != nil {
		return nil, plan.Plan{}, err
	}
	c := &convergence{
		executor: executor{agent: a, payload: newIncoming(spec, payload)},
		gather:   func(ctx context.Context) (plan.Facts, error) { return a.gather(ctx, &spec) },
		make:     func(facts plan.Facts) plan.Plan { return plan.Make(facts, spec) },
	}
	left, restarted, err := c.run(ctx)
	if err != nil || restarted {
		return nil, plan.Plan{}, err
	}
	if err := a.finish(ctx, spec, c.facts, left); err != nil {
		return nil, plan.Plan{}, err
	}
	c.facts.Applied, err = a.store.applied(ctx)
	return c, left, err
}

// begin remembers what the host is like before it is changed, and what it is to become.
func (a *agent) begin(ctx context.Context, spec nodespec.NodeSpec) error {
	facts, err := a.gather(ctx, &spec)
	if err != nil {
		return err
	}
	if facts, err = a.asFound(ctx, facts); err != nil {
		return err
	}
	ledger := plan.Record(facts, spec)
	if err := a.keepContents(ctx, facts.Ledger, ledger); err != nil {
		return err
	}
	if err := a.store.setLedger(ctx, ledger); err != nil {
		return err
	}
	return a.store.setSpec(ctx, spec)
}

// keepContents fills in the content of files that are new in the ledger and were there before us.
func (a *agent) keepContents(ctx context.Context, known, ledger plan.Ledger) error {
	for path, before := range ledger.Paths {
		if _, old := known.Paths[path]; old || !before.Existed || before.Directory || before.LinkTarget != "" {
			continue
		}
		info, err := a.host.Files.Stat(ctx, path)
		if err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		if info.Size > maxConfigFile {
			return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
				"file %s is in the way: it was there before and has %d bytes, too many to keep; move it away", path, info.Size)}
		}
		if before.Content, err = a.store.read(ctx, path); err != nil {
			return err
		}
		ledger.Paths[path] = before
	}
	return nil
}

// finish notes that the spec was applied to its end, and forgets what is ours no more.
func (a *agent) finish(ctx context.Context, spec nodespec.NodeSpec, facts plan.Facts, left plan.Plan) error {
	if err := a.clear(ctx, spec, facts); err != nil {
		return err
	}
	if len(left.Needs) > 0 {
		return nil
	}
	return a.store.setApplied(ctx, spec.Digest())
}

// clear forgets what is ours no more, and clears the agent's folder.
func (a *agent) clear(ctx context.Context, spec nodespec.NodeSpec, facts plan.Facts) error {
	if err := a.store.setLedger(ctx, plan.Prune(facts, spec)); err != nil {
		return err
	}
	fallback, err := a.store.fallback(ctx)
	if err != nil {
		return err
	}
	a.tidy(ctx, spec, fallback, facts)
	return nil
}

// tidy removes inputs that were used and former agents that neither run nor are the fallback's, if there is one. What cannot be removed now
// is removed after the next apply.
func (a *agent) tidy(ctx context.Context, spec nodespec.NodeSpec, fallback *nodespec.NodeSpec, facts plan.Facts) {
	service := facts.Services[nodespec.ServiceAgent]
	keep := []string{a.executable, service.CommandLine, service.RunningCommandLine}
	if fallback != nil {
		for _, each := range fallback.Services {
			keep = append(keep, each.CommandLine)
		}
	}
	var paths []string
	for _, folder := range []string{nodespec.InboxRoot, nodespec.AgentRoot} {
		entries, err := a.host.Files.ReadDir(ctx, folder)
		if err != nil {
			continue // not there
		}
		for _, entry := range entries {
			former := entry.Directory && len(entry.Name) == 12 && !slices.ContainsFunc(keep, func(text string) bool {
				return plan.Mentions(text, entry.Path)
			})
			if folder == nodespec.InboxRoot || former {
				paths = append(paths, entry.Path)
			}
		}
	}
	candidates := []string{nodespec.IncomingRoot, nodespec.LandingRoot, nodespec.FoundPath}
	for _, identity := range spec.AllIdentities() {
		if known := facts.IdentityOf(identity.Name); known.Current != nil && known.Request == "" {
			candidates = append(candidates, pendingFile(identity)) // its certificate is in use
		}
	}
	for _, path := range candidates {
		if _, err := a.host.Files.Stat(ctx, path); err == nil && !nodespec.Within(a.executable, path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		_ = a.host.Files.Remove(ctx, path)
	}
}

// convergence makes plans of facts and does them until there is nothing left to do.
type convergence struct {
	executor
	gather func(context.Context) (plan.Facts, error)
	make   func(plan.Facts) plan.Plan
}

// run returns the last plan, which has no steps; or restarted is true, and the host goes down.
func (c *convergence) run(ctx context.Context) (left plan.Plan, restarted bool, err error) {
	var before plan.Plan
	for range maxRounds {
		if c.facts, err = c.gather(ctx); err != nil {
			return plan.Plan{}, false, err
		}
		next := c.make(c.facts)
		switch {
		case len(next.Steps) == 0:
			return next, false, nil
		case len(next.Steps) == 1 && next.Steps[0].Reboots:
			return next, true, c.restart(ctx, next)
		case samePlan(before, next):
			return next, false, c.stuck(next.Steps[0])
		}
		before = next
		c.answer.plan(next)
		if err := c.doAll(ctx, next.Steps); err != nil {
			return next, false, err
		}
	}
	return before, false, c.stuck(before.Steps[0])
}

// restart restarts the host. The answer goes out first: nothing does afterwards.
func (c *convergence) restart(ctx context.Context, next plan.Plan) error {
	step := next.Steps[0]
	c.answer.plan(next)
	c.answer.step(verb.Step{Name: step.Name, Reason: step.Reason, Index: 1, Of: 1, State: verb.StepStarted})
	c.answer.rebooting(verb.Result{Facts: &c.facts, Plan: &plan.Plan{Needs: next.Needs}})
	if err := c.host.Power.Reboot(ctx, "Windows Machine Config Operator: "+step.Reason); err != nil {
		return failureOf(step.Name, fmt.Errorf("restart the host: %w", err))
	}
	return nil
}

func samePlan(a, b plan.Plan) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y plan.Step) bool { return x.Name == y.Name && x.Reason == y.Reason })
}

// stuck says that steps were done and did not last.
func (c *convergence) stuck(step plan.Step) error {
	if start, ok := step.Operation.(plan.StartService); ok {
		service := c.facts.Services[start.Service]
		if service.State == host.ServiceStopped {
			return &verb.Failure{Reason: verb.ReasonServiceFailed, Step: step.Name, Message: fmt.Sprintf(
				"service %s starts and ends at once, with exit code %d; look at %s on the host",
				start.Service, service.ExitCode, nodespec.LogDirectory(start.Service))}
		}
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Step: step.Name, Message: "the step was done and does not last: " + step.Reason +
		"; something on the host undoes it"}
}
