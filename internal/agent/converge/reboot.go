package converge

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Reboot restarts the host if it still runs since the boot that the operator means. So a restart that is asked for
// twice, because the first answer was lost, happens once. R-095
func (h *Host) Reboot(ctx context.Context, wanted, present string) error {
	found, err := h.Source.Gather(ctx, nil)
	if err != nil {
		return err
	}
	if wanted != present {
		h.Answer.Result(verb.Result{Facts: &found})
		return nil
	}
	c := &convergence{Executor: execute.Executor{Means: h.Means, Facts: found}}
	return c.restart(ctx, plan.Restart("the operator was asked to restart the host"))
}
