package state

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Fallback is the NodeSpec that a rollback goes back to: its file, and what is known of it. Both are kept byte for byte
// as the agent has written them that has applied the NodeSpec.
type Fallback struct {
	Applied
	Document []byte
	applied  []byte
}

// Fallback returns what a rollback goes back to; nil when none is kept, or one that is not whole.
func (r Records) Fallback(ctx context.Context) (*Fallback, error) {
	kept, err := r.read(ctx, nodespec.FallbackPath, nodespec.FallbackAppliedPath)
	if err != nil || kept.Document == nil || kept.File != plan.Digest(kept.Document) {
		return nil, err
	}
	return &kept, nil
}

func (r Records) read(ctx context.Context, specPath, appliedPath string) (found Fallback, err error) {
	if found.Document, err = hostutil.ReadFile(ctx, r.files, specPath); err != nil {
		return Fallback{}, err
	}
	if found.applied, err = hostutil.ReadFile(ctx, r.files, appliedPath); err != nil {
		return Fallback{}, err
	}
	found.Applied = understood(found.applied)
	return found, nil
}

// Keepable returns what the host could go back to after another NodeSpec was applied. If there is nothing, why says so in
// words for an administrator; it is empty for a host to which no NodeSpec was ever applied.
func (r Records) Keepable(ctx context.Context) (keepable *Fallback, why string, err error) {
	found, err := r.read(ctx, nodespec.SpecPath, nodespec.AppliedPath)
	switch {
	case err != nil || found.Digest == "":
		return nil, "", err
	case found.Document == nil:
		return nil, nodespec.SpecPath + " is not there", nil
	case plan.Digest(found.Document) == found.File:
		return &found, "", nil
	}
	// Sent again with another certificate, it is the same NodeSpec in another file.
	spec, err := nodespec.Decode(found.Document)
	if err != nil || spec.Digest() != found.Digest {
		//nolint:nilerr // whatever is wrong with the file, it is not kept, and the answer says so
		return nil, fmt.Sprintf("%s is not the last NodeSpec that was applied completely", nodespec.SpecPath), nil
	}
	found.File = plan.Digest(found.Document)
	if found.applied, err = found.encode(); err != nil {
		return nil, "", err
	}
	return &found, "", nil
}

// SetFallback keeps what a rollback goes back to. The NodeSpec comes last: without it, nothing is kept.
func (r Records) SetFallback(ctx context.Context, fallback Fallback) error {
	if err := r.forget(ctx, nodespec.FallbackPath); err != nil {
		return err
	}
	if err := hostutil.KeepFile(ctx, r.files, nodespec.FallbackAppliedPath, fallback.applied); err != nil {
		return err
	}
	return hostutil.KeepFile(ctx, r.files, nodespec.FallbackPath, fallback.Document)
}

// ForgetFallback keeps no NodeSpec for a rollback any more. None is no error.
func (r Records) ForgetFallback(ctx context.Context) error {
	if err := r.forget(ctx, nodespec.FallbackPath); err != nil {
		return err
	}
	return r.forget(ctx, nodespec.FallbackAppliedPath)
}
