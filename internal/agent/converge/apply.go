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
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Host is a host to change. Each method is an agent command and reports its result; an error is the failure of
// the command.
type Host struct {
	execute.Means
	Source *facts.Source
	Folder *installdir.Folder
}

// wanted is a desired NodeSpec with its file content.
type wanted struct {
	nodespec.NodeSpec
	document []byte
}

// readSpec reads the NodeSpec sent with the command.
func (h *Host) readSpec(ctx context.Context, path string) (wanted, error) {
	data, err := hostutil.ReadFile(ctx, h.Host.Files, path)
	if err != nil {
		return wanted{}, err
	}
	if data == nil {
		return wanted{}, state.InvalidInput("the NodeSpec " + path + " is not on the host")
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return wanted{}, state.InvalidInput(path + ": " + err.Error())
	}
	return wanted{spec, data}, nil
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
	h.Answer.Result(verb.Result{Facts: &found, Plan: &p})
	return nil
}

// Input is the input of the command apply.
type Input struct {
	Spec    string // path
	Payload string // path; empty if no payload was sent
	// Fallback is the digest of the spec to keep for a rollback if it is the current spec when the command
	// starts.
	Fallback string
	// InService is true for a node with pods: the command returns a disruptive plan without running it.
	InService bool
}

// Apply configures the host with the spec.
func (h *Host) Apply(ctx context.Context, in Input) error {
	spec, err := h.readSpec(ctx, in.Spec)
	if err != nil {
		return err
	}
	noFallback, err := h.keepFallback(ctx, in.Fallback, spec.NodeSpec)
	if err != nil {
		return err
	}
	c, left, err := h.bring(ctx, spec, in)
	if err != nil || c == nil {
		return err
	}
	h.Answer.Result(verb.Result{Facts: &c.Facts, Plan: &left, NoFallback: noFallback})
	return nil
}

// bring configures the host with the spec. It returns the convergence with the final facts, or nil if the host
// restarts: the next command continues.
func (h *Host) bring(ctx context.Context, spec wanted, in Input) (*convergence, plan.Plan, error) {
	c := h.converge(&spec.NodeSpec, in.Payload, func(found plan.Facts) plan.Plan { return plan.Make(found, spec.NodeSpec) })
	c.inService = in.InService
	var err error
	if c.Facts, err = c.gather(ctx); err != nil {
		return nil, plan.Plan{}, err
	}
	if left := c.make(c.Facts); c.refuses(left) {
		return c, left, nil
	}
	if err := h.begin(ctx, spec, c.Facts); err != nil {
		return nil, plan.Plan{}, err
	}
	left, restarted, err := c.run(ctx)
	if err != nil || restarted {
		return nil, plan.Plan{}, err
	}
	if c.refuses(left) {
		return c, left, nil
	}
	if err := h.finish(ctx, spec, c.Facts, left); err != nil {
		return nil, plan.Plan{}, err
	}
	applied, err := h.Records.Applied(ctx)
	c.Facts.Applied, c.Facts.AppliedAgent, c.Facts.NoFallback = applied.Digest, applied.Agent, ""
	return c, left, err
}
