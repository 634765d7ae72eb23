package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// verify does the checks of the spec that the host is held to. Each may take its own time to pass; they wait side by side.
func (a *agent) verify(ctx context.Context) error {
	spec, err := a.store.spec(ctx)
	if err != nil {
		return err
	}
	if spec == nil {
		return invalidInput("the host was not configured: there is no " + nodespec.SpecPath)
	}
	facts, err := a.gather(ctx, spec)
	if err != nil {
		return err
	}
	resolved := plan.Resolve(facts, *spec)
	checks := &checker{agent: a, spec: resolved}
	results := make([]verb.CheckResult, len(spec.Checks))
	began := a.clock.Now()
	for {
		waiting := 0
		for i, check := range resolved.Checks {
			if results[i].Passed {
				continue
			}
			results[i] = checks.result(ctx, check)
			if !results[i].Passed && a.clock.Since(began) < check.Timeout {
				waiting = i + 1
			}
		}
		if waiting == 0 {
			break
		}
		a.tellWaiting(resolved.Checks[waiting-1], results[waiting-1], waiting, len(results), began)
		if err := sleep(ctx, a.clock, PollInterval); err != nil {
			return err
		}
	}
	started, err := a.kubeletStarted(ctx)
	if err != nil {
		return err
	}
	a.answer.result(verb.Result{Checks: results, KubeletStarted: started})
	return nil
}

// kubeletStarted is when the process of the kubelet's service began. It is zero where Windows does not tell, or the clock was set back since:
// by such a time nobody could know what came after it.
func (a *agent) kubeletStarted(ctx context.Context) (time.Time, error) {
	services, err := a.host.Services.Query(ctx, nodespec.ServiceKubelet)
	if err != nil {
		return time.Time{}, fmt.Errorf("query service %s: %w", nodespec.ServiceKubelet, err)
	}
	if len(services) == 0 || services[0].PID == 0 {
		return time.Time{}, nil
	}
	processes, err := a.host.Processes.List(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("list processes: %w", err)
	}
	for _, process := range processes {
		if process.PID == services[0].PID && !process.Started.After(a.clock.Now()) {
			return process.Started, nil
		}
	}
	return time.Time{}, nil
}

func (a *agent) tellWaiting(check nodespec.Check, result verb.CheckResult, index, of int, began time.Time) {
	step := checkStep(check)
	step.Index, step.Of = index, of
	a.answer.detail(step, "waits "+(check.Timeout-a.clock.Since(began)).Round(time.Second).String()+" more: "+result.Message)
}

// checkStep is what lines of progress call a check.
func checkStep(check nodespec.Check) verb.Step {
	return verb.Step{Name: "Check " + check.Name, Reason: "the node must be proven to work"}
}
