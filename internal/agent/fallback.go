package agent

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// The fallback is the NodeSpec that the host had before the one that is being applied, kept until that one is proven. All of it but the
// programs can be made of it again; so its releases and its agent stay on the host, and a rollback needs nothing from the operator.

// keepFallback keeps the spec that the host has, if it is the one that the operator names and another is about to be applied. One that is
// kept already stays: what came after it was not proven.
func (a *agent) keepFallback(ctx context.Context, digest string, next nodespec.NodeSpec) error {
	if digest == "" {
		return nil
	}
	kept, err := a.store.fallback(ctx)
	if err != nil || kept != nil {
		return err
	}
	present, err := a.store.spec(ctx)
	if errors.Is(err, errForeignSpec) || err == nil && present == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if "sha256:"+present.Digest() != digest || present.Digest() == next.Digest() {
		return nil
	}
	return a.store.setFallback(ctx, *present)
}

// rollback brings the host to the fallback, which is then its spec and kept no more. From the first change on the fallback is the host's
// spec too: an agent's service that goes on after a kill works towards it and not against it.
func (a *agent) rollback(ctx context.Context, digest string) error {
	spec, err := a.rollbackSpec(ctx, digest)
	if err != nil {
		return err
	}
	c, left, err := a.bring(ctx, spec, "")
	if err != nil || c == nil {
		return err
	}
	if len(left.Needs) == 0 { // else the operator goes on with the verb apply, and asks again
		if err := a.store.forgetFallback(ctx); err != nil {
			return err
		}
		c.facts.Fallback, c.facts.Kept = "", nil
	}
	a.answer.result(verb.Result{Facts: &c.facts, Plan: &left})
	return nil
}

// rollbackSpec is the fallback. When none is kept and the digest is that of the host's spec, an earlier rollback was cut off when all was
// done but the answer.
func (a *agent) rollbackSpec(ctx context.Context, digest string) (nodespec.NodeSpec, error) {
	spec, err := a.store.fallback(ctx)
	if err == nil && spec == nil && digest != "" {
		spec, err = a.store.spec(ctx)
	}
	switch {
	case errors.Is(err, errForeignSpec):
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

// settle forgets the fallback and removes what was kept for it. It repairs nothing: that is the service's.
func (a *agent) settle(ctx context.Context) error {
	if err := a.store.forgetFallback(ctx); err != nil {
		return err
	}
	spec, err := a.store.spec(ctx)
	if errors.Is(err, errForeignSpec) {
		return &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: err.Error()}
	}
	if err != nil {
		return err
	}
	ledger, _, err := a.store.ledger(ctx)
	if err != nil {
		return err
	}
	if spec == nil || ledger.Removing {
		facts, err := a.gather(ctx, nil)
		if err != nil {
			return err
		}
		a.answer.result(verb.Result{Facts: &facts, Plan: &plan.Plan{}})
		return nil
	}
	c := &convergence{
		executor: executor{agent: a, payload: newIncoming(*spec, "")},
		gather:   func(ctx context.Context) (plan.Facts, error) { return a.gather(ctx, spec) },
		make:     func(facts plan.Facts) plan.Plan { return plan.Settle(facts, *spec) },
	}
	left, _, err := c.run(ctx)
	if err != nil {
		return err
	}
	if err := a.clear(ctx, *spec, c.facts); err != nil {
		return err
	}
	a.answer.result(verb.Result{Facts: &c.facts, Plan: &left})
	return nil
}
