// Package converge configures the host with a NodeSpec, or restores the host. It gathers facts, creates a plan
// and runs steps until none are left, and keeps the records required for each of these. Planning and the steps
// themselves are in other packages.
package converge

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/installdir"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Host is a host to change. Each method is an agent command and reports its result; an error is the failure of
// the command.
type Host struct {
	execute.Dependencies
	Source    *facts.Source
	Directory *installdir.Directory
}

// desiredSpec is a desired NodeSpec with its file content.
type desiredSpec struct {
	nodespec.NodeSpec
	document []byte
}

// readSpec reads the NodeSpec sent with the command.
func (h *Host) readSpec(ctx context.Context, path string) (desiredSpec, error) {
	data, err := hostutil.ReadFile(ctx, h.Host.Files, path)
	if err != nil {
		return desiredSpec{}, err
	}
	if data == nil {
		return desiredSpec{}, state.InvalidInput("the NodeSpec file " + path + " does not exist")
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return desiredSpec{}, state.InvalidInput(path + ": " + err.Error())
	}
	return desiredSpec{spec, data}, nil
}

// Plan reports the plan of Apply for the spec at the path, and changes nothing.
func (h *Host) Plan(ctx context.Context, specPath string) error {
	spec, err := h.readSpec(ctx, specPath)
	if err != nil {
		return err
	}
	found, err := h.Source.Gather(ctx, &spec.NodeSpec)
	if err != nil {
		return err
	}
	p := plan.Make(found, spec.NodeSpec)
	h.Answer.Result(agentapi.Result{Facts: &found, Plan: &p})
	return nil
}

// Input is the input of the command apply.
type Input struct {
	Spec    string // path
	Payload string // path; empty if no payload was sent
	// RollbackTarget is the digest of the spec to keep for a rollback if it is the current spec when the command
	// starts.
	RollbackTarget string
	// InService is true for a node with pods: the command returns a disruptive plan without running it.
	InService bool
}

// Apply configures the host with the spec.
func (h *Host) Apply(ctx context.Context, in Input) error {
	spec, err := h.readSpec(ctx, in.Spec)
	if err != nil {
		return err
	}
	noFallback, err := h.keepRollbackTarget(ctx, in.RollbackTarget, spec.NodeSpec)
	if err != nil {
		return err
	}
	c, left, err := h.convergeTo(ctx, spec, in)
	if err != nil || c == nil {
		return err
	}
	h.Answer.Result(agentapi.Result{Facts: &c.Facts, Plan: &left, NoRollbackReason: noFallback})
	return nil
}

// convergeTo configures the host with the spec. It returns the convergence with the final facts, or nil if the host
// restarts: the next command continues.
func (h *Host) convergeTo(ctx context.Context, spec desiredSpec, in Input) (*convergence, plan.Plan, error) {
	c := h.newConvergence(&spec.NodeSpec, in.Payload, func(found plan.Facts) plan.Plan { return plan.Make(found, spec.NodeSpec) })
	c.inService = in.InService
	var err error
	if c.Facts, err = c.gather(ctx); err != nil {
		return nil, plan.Plan{}, err
	}
	if left := c.createPlan(c.Facts); c.isRefused(left) {
		return c, left, nil
	}
	if err := h.recordStart(ctx, spec, c.Facts); err != nil {
		return nil, plan.Plan{}, err
	}
	left, restarted, err := c.run(ctx)
	if err != nil || restarted {
		return nil, plan.Plan{}, err
	}
	if c.isRefused(left) {
		return c, left, nil
	}
	if err := h.recordApplied(ctx, spec, c.Facts, left); err != nil {
		return nil, plan.Plan{}, err
	}
	applied, err := h.Records.Applied(ctx)
	c.Facts.Applied, c.Facts.AppliedAgent, c.Facts.NoRollbackReason = applied.Digest, applied.Agent, ""
	return c, left, err
}
