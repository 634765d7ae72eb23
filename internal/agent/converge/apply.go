// Package converge brings the host to a NodeSpec, or gives it back: it has facts gathered, a plan made of them and its
// steps done, until nothing is left to do, and keeps the records that make each of these possible again. It does no
// step itself, and decides none.
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

// Host is a host that is to become something else. Each of its methods is a verb, and answers its result; an error is
// the verb's failure.
type Host struct {
	execute.Means
	Source *facts.Source
	Folder *installdir.Folder
}

// wanted is a NodeSpec to which the host is brought, and the file that it came in.
type wanted struct {
	nodespec.NodeSpec
	document []byte
}

// readSpec returns the NodeSpec that came with the verb.
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

// Plan answers what Apply would do with the spec at the path, and changes nothing.
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

// Input is what came with the verb apply.
type Input struct {
	Spec    string // path
	Payload string // path; empty when nothing was sent
	// Fallback is the digest of the spec that is kept for a rollback if it is the host's when the verb begins.
	Fallback string
	// InService is true for a node with pods: the verb does no plan that pods feel, and returns it.
	InService bool
}

// Apply brings the host to the spec.
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

// bring brings the host to the spec, with the facts as they are then. It returns nothing when the host restarts: the
// next verb goes on.
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
