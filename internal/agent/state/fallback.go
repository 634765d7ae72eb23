package state

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// RollbackTarget is the rollback target: a NodeSpec file and the description of its application. Both are kept byte
// for byte as written by the agent that applied the NodeSpec.
type RollbackTarget struct {
	Applied
	Document []byte
	applied  []byte
}

// RollbackTarget returns the rollback target, or nil if no complete rollback target exists.
func (r Records) RollbackTarget(ctx context.Context) (*RollbackTarget, error) {
	kept, err := r.read(ctx, nodespec.RollbackTargetPath, nodespec.RollbackAppliedPath)
	if err != nil || kept.Document == nil || kept.File != plan.Digest(kept.Document) {
		return nil, err
	}
	return &kept, nil
}

func (r Records) read(ctx context.Context, specPath, appliedPath string) (found RollbackTarget, err error) {
	if found.Document, err = hostutil.ReadFile(ctx, r.files, specPath); err != nil {
		return RollbackTarget{}, err
	}
	if found.applied, err = hostutil.ReadFile(ctx, r.files, appliedPath); err != nil {
		return RollbackTarget{}, err
	}
	found.Applied = decodeApplied(found.applied)
	return found, nil
}

// RollbackCandidate returns the last completely applied NodeSpec, which can become the rollback target when another
// NodeSpec is applied. If there is none, why is the reason in words for an administrator. The reason is empty for a
// host to which no NodeSpec was ever applied.
func (r Records) RollbackCandidate(ctx context.Context) (keepable *RollbackTarget, why string, err error) {
	found, err := r.read(ctx, nodespec.SpecPath, nodespec.AppliedPath)
	switch {
	case err != nil || found.Digest == "":
		return nil, "", err
	case found.Document == nil:
		return nil, nodespec.SpecPath + " does not exist", nil
	case plan.Digest(found.Document) == found.File:
		return &found, "", nil
	}
	// The same NodeSpec sent again with another certificate is in a different file.
	spec, err := nodespec.Decode(found.Document)
	if err != nil || spec.Digest() != found.Digest {
		//nolint:nilerr // whatever is wrong with the file, it is not kept, and the answer says so
		return nil, fmt.Sprintf("%s is not the last completely applied NodeSpec", nodespec.SpecPath), nil
	}
	found.File = plan.Digest(found.Document)
	if found.applied, err = found.encodeJSON(); err != nil {
		return nil, "", err
	}
	return &found, "", nil
}

// SetRollbackTarget writes the rollback target. The NodeSpec is written last: without the NodeSpec there is no
// rollback target.
func (r Records) SetRollbackTarget(ctx context.Context, fallback RollbackTarget) error {
	if err := r.removeFile(ctx, nodespec.RollbackTargetPath); err != nil {
		return err
	}
	if err := hostutil.EnsureFile(ctx, r.files, nodespec.RollbackAppliedPath, fallback.applied); err != nil {
		return err
	}
	return hostutil.EnsureFile(ctx, r.files, nodespec.RollbackTargetPath, fallback.Document)
}

// RemoveRollbackTarget removes the rollback target. A missing target is not an error.
func (r Records) RemoveRollbackTarget(ctx context.Context) error {
	if err := r.removeFile(ctx, nodespec.RollbackTargetPath); err != nil {
		return err
	}
	return r.removeFile(ctx, nodespec.RollbackAppliedPath)
}
