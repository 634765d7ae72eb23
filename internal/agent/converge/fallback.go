package converge

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The rollback target is the previous NodeSpec, kept until the applied NodeSpec is verified. Everything except
// programs can be generated from the rollback target. The releases and the agent of the rollback target stay on
// the host, so a rollback needs nothing from the operator. If an agent of another release applied the rollback
// target, the file is kept unchanged and that agent rolls the host back.

// keepRollbackTarget keeps the current spec as rollback target if the operator names this spec and another spec is
// about to be applied. An existing rollback target is preserved, because later specs were not verified. If the
// named spec cannot be kept, why is the reason.
func (h *Host) keepRollbackTarget(ctx context.Context, digest string, next nodespec.NodeSpec) (why string, err error) {
	if digest == "" {
		return "", nil
	}
	kept, err := h.Records.RollbackTarget(ctx)
	if err != nil {
		return "", err
	}
	if kept != nil {
		return h.Source.UnusableReason(ctx, *kept)
	}
	present, why, err := h.Source.RollbackCandidate(ctx)
	switch {
	case err != nil || why != "":
		return why, err
	case present == nil:
		return "no NodeSpec was completely applied to the host", nil
	case "sha256:"+present.Digest != digest:
		return "the last completely applied NodeSpec of the host has another digest", nil
	case present.Digest == next.Digest():
		return "", nil
	}
	return "", h.Records.SetRollbackTarget(ctx, *present)
}

// Rollback configures the host with the rollback target, which becomes the current spec and is no longer kept.
// A nonempty digest must match the rollback target. The rollback target is recorded as the desired spec before
// the first change: after a kill, the agent's service continues the rollback instead of reverting it.
func (h *Host) Rollback(ctx context.Context, digest string) error {
	spec, err := h.rollbackSpec(ctx, digest)
	if err != nil {
		return err
	}
	c, left, err := h.convergeTo(ctx, spec, Input{})
	if err != nil || c == nil {
		return err
	}
	if len(left.Needs) == 0 { // otherwise the operator continues with apply and requests the rollback again
		if err := h.Records.RemoveRollbackTarget(ctx); err != nil {
			return err
		}
		c.Facts.RollbackTarget, c.Facts.RollbackAgent, c.Facts.RollbackReleases = "", "", nil
	}
	h.Answer.Result(agentapi.Result{Facts: &c.Facts, Plan: &left})
	return nil
}

// rollbackSpec returns the rollback target. If none is kept and the current spec has the digest, an earlier
// rollback was interrupted after the work but before the response.
func (h *Host) rollbackSpec(ctx context.Context, digest string) (desiredSpec, error) {
	kept, err := h.Records.RollbackTarget(ctx)
	if err == nil && kept == nil && digest != "" {
		kept, _, err = h.Records.RollbackCandidate(ctx)
	}
	switch {
	case err != nil:
		return desiredSpec{}, err
	case kept == nil:
		return desiredSpec{}, &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: "the host has no rollback target"}
	case digest != "" && "sha256:"+kept.Digest != digest:
		return desiredSpec{}, &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: "the rollback target of the host has another digest"}
	}
	spec, err := nodespec.Decode(kept.Document)
	if err != nil {
		return desiredSpec{}, &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: fmt.Sprintf(
			"the rollback target of the host must be applied by agent %s, which applied it before: %v",
			nodespec.AgentPath(kept.Agent), err)}
	}
	return desiredSpec{spec, kept.Document}, nil
}

// Commit deletes the rollback target and the files kept for a rollback. Repairs are left to the service.
func (h *Host) Commit(ctx context.Context) error {
	if err := h.Records.RemoveRollbackTarget(ctx); err != nil {
		return err
	}
	spec, err := h.Records.Spec(ctx)
	if errors.Is(err, state.ErrForeignSpec) {
		return &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: err.Error()}
	}
	if err != nil {
		return err
	}
	ledger, _, err := h.Records.Ledger(ctx)
	if err != nil {
		return err
	}
	if spec == nil || ledger.Removing {
		found, err := h.Source.Gather(ctx, nil)
		if err != nil {
			return err
		}
		h.Answer.Result(agentapi.Result{Facts: &found, Plan: &plan.Plan{}})
		return nil
	}
	c := h.newConvergence(spec, "", func(found plan.Facts) plan.Plan { return plan.Commit(found, *spec) })
	left, _, err := c.run(ctx)
	if err != nil {
		return err
	}
	if err := h.removeObsolete(ctx, *spec, c.Facts); err != nil {
		return err
	}
	h.Answer.Result(agentapi.Result{Facts: &c.Facts, Plan: &left})
	return nil
}
