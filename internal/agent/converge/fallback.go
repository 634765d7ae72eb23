package converge

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/agent/records"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// The fallback is the NodeSpec that the host had before the one that is being applied, kept until that one is proven.
// All of it but the programs can be made of it again; so its releases and its agent stay on the host, and a rollback
// needs nothing from the operator.

// keepFallback keeps the spec that the host has, if it is the one that the operator names and another is about to be
// applied. One that is kept already stays: what came after it was not proven.
func (h *Host) keepFallback(ctx context.Context, digest string, next nodespec.NodeSpec) error {
	if digest == "" {
		return nil
	}
	kept, err := h.Records.Fallback(ctx)
	if err != nil || kept != nil {
		return err
	}
	present, err := h.Records.Spec(ctx)
	if errors.Is(err, records.ErrForeignSpec) || err == nil && present == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if "sha256:"+present.Digest() != digest || present.Digest() == next.Digest() {
		return nil
	}
	return h.Records.SetFallback(ctx, *present)
}

// Rollback brings the host to the fallback, which is then its spec and kept no more; with a digest, only to the one
// that has it. From the first change on the fallback is the host's spec too: an agent's service that goes on after a
// kill works towards it and not against it.
func (h *Host) Rollback(ctx context.Context, digest string) error {
	spec, err := h.rollbackSpec(ctx, digest)
	if err != nil {
		return err
	}
	c, left, err := h.bring(ctx, spec, "")
	if err != nil || c == nil {
		return err
	}
	if len(left.Needs) == 0 { // else the operator goes on with the verb apply, and asks again
		if err := h.Records.ForgetFallback(ctx); err != nil {
			return err
		}
		c.Facts.Fallback, c.Facts.Kept = "", nil
	}
	h.Answer.Result(verb.Result{Facts: &c.Facts, Plan: &left})
	return nil
}

// rollbackSpec is the fallback. When none is kept and the host's spec has the digest, an earlier
// rollback was interrupted after its work and before its answer.
func (h *Host) rollbackSpec(ctx context.Context, digest string) (nodespec.NodeSpec, error) {
	spec, err := h.Records.Fallback(ctx)
	if err == nil && spec == nil && digest != "" {
		spec, err = h.Records.Spec(ctx)
	}
	switch {
	case errors.Is(err, records.ErrForeignSpec):
		return nodespec.NodeSpec{}, &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: err.Error()}
	case err != nil:
		return nodespec.NodeSpec{}, err
	case spec == nil:
		return nodespec.NodeSpec{}, &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: "no NodeSpec is kept on the host to go back to"}
	case digest != "" && "sha256:"+spec.Digest() != digest:
		return nodespec.NodeSpec{}, &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: "the NodeSpec that is kept on the host is another"}
	}
	return *spec, nil
}

// Settle forgets the fallback and removes what was kept for it. It repairs nothing: that is the service's.
func (h *Host) Settle(ctx context.Context) error {
	if err := h.Records.ForgetFallback(ctx); err != nil {
		return err
	}
	spec, err := h.Records.Spec(ctx)
	if errors.Is(err, records.ErrForeignSpec) {
		return &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: err.Error()}
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
		h.Answer.Result(verb.Result{Facts: &found, Plan: &plan.Plan{}})
		return nil
	}
	c := h.converge(spec, "", func(found plan.Facts) plan.Plan { return plan.Settle(found, *spec) })
	left, _, err := c.run(ctx)
	if err != nil {
		return err
	}
	if err := h.clear(ctx, *spec, c.Facts); err != nil {
		return err
	}
	h.Answer.Result(verb.Result{Facts: &c.Facts, Plan: &left})
	return nil
}
