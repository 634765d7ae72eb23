package agent

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// remove gives the host back as it was, but for the agent's own folder.
func (a *agent) remove(ctx context.Context) error {
	ledger, known, err := a.store.ledger(ctx)
	if err != nil {
		return err
	}
	if !known {
		ledger, known, err = a.olderLedger(ctx)
	}
	if err != nil {
		return err
	}
	if !known {
		if err := a.reopen(ctx); err != nil {
			return err
		}
		a.answer.result(verb.Result{Plan: &plan.Plan{}, Removed: true})
		return nil
	}
	ledger.Removing, ledger.Refusal = true, nil
	if err := a.store.setLedger(ctx, ledger); err != nil {
		return err
	}
	if err := a.store.forgetApplied(ctx); err != nil {
		return err
	}
	if err := a.store.forgetFallback(ctx); err != nil {
		return err
	}
	c := &convergence{
		executor: executor{agent: a, payload: newIncoming(nodespec.NodeSpec{}, "")},
		gather:   func(ctx context.Context) (plan.Facts, error) { return a.gather(ctx, &nodespec.NodeSpec{}) },
		make:     plan.Remove,
	}
	left, restarted, err := c.run(ctx)
	if err != nil || restarted {
		return err
	}
	a.answer.result(verb.Result{Facts: &c.facts, Plan: &left, Removed: true})
	return nil
}

// olderLedger is the ledger of a host that an older operator configured and that leaves before it was taken over.
func (a *agent) olderLedger(ctx context.Context) (ledger plan.Ledger, known bool, err error) {
	spec := plan.OlderNode()
	facts, err := a.gather(ctx, &spec)
	if err != nil {
		return plan.Ledger{}, false, err
	}
	if facts, err = a.asFound(ctx, facts); err != nil {
		return plan.Ledger{}, false, err
	}
	ledger, known = plan.RecordOlder(facts)
	return ledger, known, nil
}
