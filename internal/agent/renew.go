package agent

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// renew gives identities of the spec that the host has another certificate, and touches nothing else: without the certificates it makes
// keys and requests, with them it puts them in place.
func (a *agent) renew(ctx context.Context, in input) error {
	known, err := a.store.spec(ctx)
	if err != nil {
		return err
	}
	if known == nil {
		return &verb.Failure{Reason: verb.ReasonSpecUnknown, Message: "the host has no NodeSpec from before"}
	}
	spec := *known
	for _, identity := range known.Identities {
		spec = spec.WithCertificate(identity.Name, in.certificates[identity.Name])
	}
	facts, err := a.identityFacts(ctx, spec)
	if err != nil {
		return err
	}
	p := plan.Renew(facts, spec, in.renewals)
	if len(p.Steps) > 0 {
		a.answer.plan(p)
		e := &executor{agent: a, facts: facts, payload: newIncoming(spec, "")}
		if err := e.doAll(ctx, p.Steps); err != nil {
			return err
		}
		if facts, err = a.identityFacts(ctx, spec); err != nil {
			return err
		}
	}
	a.answer.result(verb.Result{Facts: &facts, Plan: &plan.Plan{Needs: p.Needs}})
	return nil
}

// identityFacts are the facts that are known without a spec, and those of the spec's identities.
func (a *agent) identityFacts(ctx context.Context, spec nodespec.NodeSpec) (plan.Facts, error) {
	facts, err := a.gather(ctx, nil)
	if err != nil {
		return facts, err
	}
	g := &gatherer{agent: a, spec: spec, facts: facts}
	err = g.identities(ctx)
	return g.facts, err
}
