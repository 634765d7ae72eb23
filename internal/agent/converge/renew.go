package converge

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Renew replaces the certificates of the named identities of the host's spec, and changes nothing else. Without
// certificates, Renew creates keys and requests. With certificates (PEM by identity name), Renew installs them.
func (h *Host) Renew(ctx context.Context, names []string, certificates map[string]string) error {
	known, err := h.Records.StoredSpec(ctx)
	if err != nil {
		return err
	}
	if known == nil {
		return &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: "the host has no NodeSpec"}
	}
	if err := known.ValidateRenewal(names); err != nil {
		return &agentapi.Failure{Reason: agentapi.ReasonSpecNotFound, Message: nodespec.SpecPath + ": " + err.Error()}
	}
	spec := known.NodeSpec
	for _, each := range known.Identities {
		spec = spec.WithCertificate(each.Name, certificates[each.Name])
	}
	found, err := h.Source.Identities(ctx, spec)
	if err != nil {
		return err
	}
	p := plan.Renew(found, spec, names)
	if len(p.Steps) > 0 {
		h.Answer.Plan(p)
		e := &execute.Executor{Dependencies: h.Dependencies, Facts: found, Incoming: releases.NewIncoming(spec, "")}
		if err := e.RunSteps(ctx, p.Steps); err != nil {
			return err
		}
		if found, err = h.Source.Identities(ctx, spec); err != nil {
			return err
		}
	}
	h.Answer.Result(agentapi.Result{Facts: &found, Plan: &plan.Plan{Needs: p.Needs}})
	return nil
}
