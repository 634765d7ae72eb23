package agent

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/checks"
	"github.com/windows-machine-config/wmco/internal/agent/collect"
	"github.com/windows-machine-config/wmco/internal/agent/converge"
	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// run runs a command and writes its output, except for the failure.
func (r *commandRunner) run(ctx context.Context, in input) error {
	info, err := r.Host.System.Info(ctx)
	r.Answer.Hello(agentapi.Hello{Version: r.Version, Command: in.command, BootID: info.BootID, PID: r.Host.Processes.Self()})
	if err != nil {
		return fmt.Errorf("query Windows system information: %w", err)
	}
	switch in.command {
	case agentapi.Facts:
		return r.reportFacts(ctx, in)
	case agentapi.Inspect:
		return r.inspectHost(ctx, in)
	case agentapi.Collect:
		return r.collectState(ctx, in, info)
	case agentapi.Plan:
		return r.newHost().Plan(ctx, in.spec)
	case agentapi.Patch:
		if err := r.directory.Patch(ctx, in.patch); err != nil {
			return err
		}
		r.Answer.Result(agentapi.Result{})
		return nil
	}
	release, err := r.lock.Acquire(ctx, in.command, info.BootID)
	if err != nil {
		return err
	}
	defer release()
	r.Answer.StartRecord(func(lines []byte, more bool) error { return r.Records.AddLines(ctx, in.command, lines, more) })
	switch in.command {
	case agentapi.Apply:
		return r.newHost().Apply(ctx, converge.Input{Spec: in.spec, Payload: in.payload, RollbackTarget: in.rollbackTarget, InService: in.inService})
	case agentapi.Verify:
		verifier := checks.Verifier{Source: r.source, Clock: r.Clock, Answer: r.Answer}
		return verifier.Verify(ctx)
	case agentapi.Renew:
		return r.newHost().Renew(ctx, in.renewals, in.certificates)
	case agentapi.Rollback:
		return r.newHost().Rollback(ctx, in.digest)
	case agentapi.Commit:
		return r.newHost().Commit(ctx)
	case agentapi.Reboot:
		return r.newHost().Reboot(ctx, in.bootID, info.BootID)
	default:
		return r.newHost().Remove(ctx)
	}
}

func (r *commandRunner) newHost() *converge.Host {
	return &converge.Host{Dependencies: r.Dependencies, Source: r.source, Directory: r.directory}
}

// reportFacts reports the facts of the host. It changes only what Guard changes, because the operator is about to
// send files that only administrators may read.
func (r *commandRunner) reportFacts(ctx context.Context, in input) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attempt := facts.ConnectAPIServer(ctx, r.Host.Outbound, in.apiServer)
	name := facts.RequestCloudName(ctx, r.Host.Metadata, in.platform)
	if err := r.directory.Guard(ctx); err != nil {
		return err
	}
	found, err := r.source.Gather(ctx, nil)
	if err != nil {
		return err
	}
	found.APIServer, found.CloudName = <-attempt, <-name
	r.Answer.Result(agentapi.Result{Facts: &found})
	return nil
}

// inspectHost reports the facts of the host without changing anything: no directory is restricted, and the lock is not
// acquired.
func (r *commandRunner) inspectHost(ctx context.Context, in input) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attempt := facts.ConnectAPIServer(ctx, r.Host.Outbound, in.apiServer)
	found, err := r.source.GatherWithFeatures(ctx)
	if err != nil {
		return err
	}
	found.APIServer, found.Closed = <-attempt, r.directory.IsClosed(ctx)
	r.Answer.Result(agentapi.Result{Facts: &found})
	return nil
}

// collectState reports the state and the history of the host. The ledger is omitted because it contains the owner's
// files and variables.
func (r *commandRunner) collectState(ctx context.Context, in input, info host.SystemInfo) error {
	collector := collect.Collector{Host: r.Host, Clock: r.Clock, Runs: r.Records.Runs}
	if in.events > 0 {
		result := collector.CollectEvents(ctx, in.events)
		answer := agentapi.Result{Facts: &plan.Facts{Time: r.Clock.Now().UTC(), System: info}, Collected: &result}
		collect.Fit(&answer)
		r.Answer.Result(answer)
		return nil
	}
	result := collector.Collect(ctx)
	limited, cancel := context.WithTimeout(ctx, timeouts.CollectTimeout)
	defer cancel()
	found, err := r.source.GatherWithFeatures(limited)
	if err != nil {
		result.Unknown["facts"] = err.Error()
		found = plan.Facts{Time: r.Clock.Now().UTC(), System: info}
	}
	found.Ledger = plan.Ledger{}
	answer := agentapi.Result{Facts: &found, Collected: &result}
	collect.Fit(&answer)
	r.Answer.Result(answer)
	return nil
}
