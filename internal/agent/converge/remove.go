package converge

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Remove restores the original state of the host, except for the agent's own directory.
func (h *Host) Remove(ctx context.Context) error {
	ledger, known, err := h.Records.Ledger(ctx)
	if err != nil {
		return err
	}
	if !known {
		ledger, known, err = h.legacyLedger(ctx)
	}
	if err != nil {
		return err
	}
	if !known {
		if err := h.Directory.Reopen(ctx); err != nil {
			return err
		}
		h.Answer.Result(agentapi.Result{Plan: &plan.Plan{}, Removed: true})
		return nil
	}
	ledger.Removing, ledger.Refusal, ledger.RegistrationRefusal = true, nil, nil
	if err := h.Records.SetLedger(ctx, ledger); err != nil {
		return err
	}
	if err := h.Records.RemoveApplied(ctx); err != nil {
		return err
	}
	if err := h.Records.RemoveRollbackTarget(ctx); err != nil {
		return err
	}
	c := h.newConvergence(&nodespec.NodeSpec{}, "", plan.Remove)
	left, restarted, err := c.run(ctx)
	if err != nil || restarted {
		return err
	}
	unknown, err := h.Records.UnknownFields(ctx)
	if err != nil {
		return err
	}
	h.Answer.Result(agentapi.Result{Facts: &c.Facts, Plan: &left, Removed: true, NotRestored: unknown})
	return nil
}

// legacyLedger returns the ledger of a legacy host that is removed before its adoption.
func (h *Host) legacyLedger(ctx context.Context) (ledger plan.Ledger, known bool, err error) {
	spec := plan.LegacyNode()
	found, err := h.Source.Gather(ctx, &spec)
	if err != nil {
		return plan.Ledger{}, false, err
	}
	if found, err = h.Directory.WithOriginalAccess(ctx, found); err != nil {
		return plan.Ledger{}, false, err
	}
	ledger, known = plan.RecordLegacy(found)
	return ledger, known, nil
}
