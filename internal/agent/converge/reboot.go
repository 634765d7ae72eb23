package converge

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Reboot restarts the host unless it has already restarted since the boot named by the operator. A restart that
// is requested twice because the first response was lost happens once. R-095
func (h *Host) Reboot(ctx context.Context, wanted, present string) error {
	found, err := h.Source.Gather(ctx, nil)
	if err != nil {
		return err
	}
	if wanted != present {
		h.Answer.Result(agentapi.Result{Facts: &found})
		return nil
	}
	if found.Login, err = h.Source.FindLogin(ctx); err != nil {
		return err
	}
	next := plan.Restart(found.Login, "a restart of the host was requested")
	c := &convergence{Executor: execute.Executor{Dependencies: h.Dependencies, Facts: found}}
	if before := next.Steps[:len(next.Steps)-1]; len(before) > 0 {
		if err := h.Records.SetLedger(ctx, plan.RecordLogin(found.Ledger, found.Login)); err != nil {
			return err
		}
		if err := c.RunSteps(ctx, before); err != nil {
			return err
		}
		next.Steps = next.Steps[len(before):]
	}
	return c.restartHost(ctx, next)
}
