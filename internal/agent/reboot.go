package agent

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// reboot restarts the host if it still runs since the boot that the operator means. So a restart that is asked for twice, because the first
// answer was lost, happens once. R-095
func (a *agent) reboot(ctx context.Context, wanted, present string) error {
	facts, err := a.gather(ctx, nil)
	if err != nil {
		return err
	}
	if wanted != present {
		a.answer.result(verb.Result{Facts: &facts})
		return nil
	}
	c := &convergence{executor: executor{agent: a, facts: facts}}
	return c.restart(ctx, plan.Restart("the operator was asked to restart the host"))
}
