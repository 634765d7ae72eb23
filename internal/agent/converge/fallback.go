package converge

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// The fallback is the NodeSpec that the host had before the one that is being applied, kept until that one is proven.
// All of it but the programs can be made of it again; so its releases and its agent stay on the host, and a rollback
// needs nothing from the operator. An agent of another release may have applied it: it is kept as that agent has
// written it, and that agent rolls the host back.

// keepFallback keeps the spec that the host has, if it is the one that the operator names and another is about to be
// applied. One that is kept already stays: what came after it was not proven. If the operator names a spec that cannot
// be kept, why says so.
func (h *Host) keepFallback(ctx context.Context, digest string, next nodespec.NodeSpec) (why string, err error) {
	if digest == "" {
		return "", nil
	}
	kept, err := h.Records.Fallback(ctx)
	if err != nil {
		return "", err
	}
	if kept != nil {
		return h.Source.Unusable(ctx, *kept)
	}
	present, why, err := h.Source.Keepable(ctx)
	switch {
	case err != nil || why != "":
		return why, err
	case present == nil:
		return "no NodeSpec was applied to the host completely", nil
	case "sha256:"+present.Digest != digest:
		return "the last NodeSpec that was applied completely to the host is another one", nil
	case present.Digest == next.Digest():
		return "", nil
	}
	return "", h.Records.SetFallback(ctx, *present)
}

// Rollback brings the host to the fallback, which is then its spec and kept no more; with a digest, only to the one
// that has it. From the first change on the fallback is the host's spec too: an agent's service that goes on after a
// kill works towards it and not against it.
func (h *Host) Rollback(ctx context.Context, digest string) error {
	spec, err := h.rollbackSpec(ctx, digest)
	if err != nil {
		return err
	}
	c, left, err := h.bring(ctx, spec, Input{})
	if err != nil || c == nil {
		return err
	}
	if len(left.Needs) == 0 { // else the operator goes on with the verb apply, and asks again
		if err := h.Records.ForgetFallback(ctx); err != nil {
			return err
		}
		c.Facts.Fallback, c.Facts.FallbackAgent, c.Facts.Kept = "", "", nil
	}
	h.Answer.Result(verb.Result{Facts: &c.Facts, Plan: &left})
	return nil
}

// rollbackSpec is the fallback. When none is kept and the host's spec has the digest, an earlier
// rollback was interrupted after its work and before its answer.
func (h *Host) rollbackSpec(ctx context.Context, digest string) (wanted, error) {
	kept, err := h.Records.Fallback(ctx)
	if err == nil && kept == nil && digest != "" {
		kept, _, err = h.Records.Keepable(ctx)
	}
	switch {
	case err != nil:
		return wanted{}, err
	case kept == nil:
		return wanted{}, &verb.Failure{Reason: verb.ReasonSpecNotFound, Message: "no NodeSpec is kept on the host to go back to"}
	case digest != "" && "sha256:"+kept.Digest != digest:
		return wanted{}, &verb.Failure{Reason: verb.ReasonSpecNotFound, Message: "the NodeSpec that is kept on the host is another"}
	}
	spec, err := nodespec.Decode(kept.Document)
	if err != nil {
		return wanted{}, &verb.Failure{Reason: verb.ReasonSpecNotFound, Message: fmt.Sprintf(
			"the NodeSpec that is kept on the host must be applied by the agent %s, which applied it before: %v",
			nodespec.AgentPath(kept.Agent), err)}
	}
	return wanted{spec, kept.Document}, nil
}

// Commit forgets the fallback and removes what was kept for it. It repairs nothing: that is the service's.
func (h *Host) Commit(ctx context.Context) error {
	if err := h.Records.ForgetFallback(ctx); err != nil {
		return err
	}
	spec, err := h.Records.Spec(ctx)
	if errors.Is(err, state.ErrForeignSpec) {
		return &verb.Failure{Reason: verb.ReasonSpecNotFound, Message: err.Error()}
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
	c := h.converge(spec, "", func(found plan.Facts) plan.Plan { return plan.Commit(found, *spec) })
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
