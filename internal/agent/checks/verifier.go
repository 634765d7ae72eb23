package checks

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Verifier runs the checks of a host.
type Verifier struct {
	Source *facts.Source
	Clock  clock.WithTicker
	Answer *state.Writer // receives the status of waiting checks
}

// Verify runs the checks of the host's spec and reports the results. Each check has its own timeout; all checks
// wait in parallel.
func (v *Verifier) Verify(ctx context.Context) error {
	held, err := v.Source.Records.StoredSpec(ctx)
	if err != nil {
		return err
	}
	if held == nil {
		return state.InvalidInput("the host is not configured: " + nodespec.SpecPath + " does not exist")
	}
	if err := held.ValidateChecks(); err != nil {
		return &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: nodespec.SpecPath + ": " + err.Error()}
	}
	spec := &held.NodeSpec
	found, err := v.Source.Gather(ctx, spec)
	if err != nil {
		return err
	}
	resolved := plan.Resolve(found, *spec)
	checks := &checker{Verifier: v, spec: resolved, facts: found}
	results := make([]agentapi.CheckResult, len(spec.Checks))
	began := v.Clock.Now()
	for {
		waiting := 0
		for i, check := range resolved.Checks {
			if results[i].Passed {
				continue
			}
			results[i] = checks.runCheck(ctx, check)
			if !results[i].Passed && v.Clock.Since(began) < check.Timeout {
				waiting = i + 1
			}
		}
		if waiting == 0 {
			break
		}
		v.reportWaiting(resolved.Checks[waiting-1], results[waiting-1], waiting, len(results), began)
		if err := timeouts.Sleep(ctx, v.Clock, timeouts.PollInterval); err != nil {
			return err
		}
	}
	started, err := v.kubeletStartTime(ctx)
	if err != nil {
		return err
	}
	v.Answer.Result(agentapi.Result{Checks: results, KubeletStarted: started})
	return nil
}

// kubeletStartTime returns the start time of the kubelet's process. It is zero if Windows does not report the
// time, or the clock was set back since: such a time does not show which events came later.
func (v *Verifier) kubeletStartTime(ctx context.Context) (time.Time, error) {
	services, err := v.Source.Host.Services.Query(ctx, nodespec.ServiceKubelet)
	if err != nil {
		return time.Time{}, fmt.Errorf("query service %s: %w", nodespec.ServiceKubelet, err)
	}
	if len(services) == 0 || services[0].PID == 0 {
		return time.Time{}, nil
	}
	kubelet, there, err := hostutil.FindProcess(ctx, v.Source.Host.Processes, services[0].PID)
	if err != nil || !there || kubelet.Started.After(v.Clock.Now()) {
		return time.Time{}, err
	}
	return kubelet.Started, nil
}

func (v *Verifier) reportWaiting(check nodespec.Check, result agentapi.CheckResult, index, of int, began time.Time) {
	step := checkStep(check)
	step.Index, step.Of = index, of
	v.Answer.Detail(step, "retrying for "+(check.Timeout-v.Clock.Since(began)).Round(time.Second).String()+": "+result.Message)
}

// checkStep returns the step that names a check in progress lines.
func checkStep(check nodespec.Check) agentapi.Step {
	return agentapi.Step{Name: "Check " + check.Name, Reason: "the node must be verified"}
}
