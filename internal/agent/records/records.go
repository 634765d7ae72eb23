// Package records keeps what the agent must remember between two runs: the ledger, the NodeSpec, the fallback, and what
// was applied. They are files that only SYSTEM and administrators can read. It decides nothing from them.
package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/files"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Records are the agent's records on one host.
type Records struct{ files host.Files }

// On returns the records that lie in a host's files.
func On(files host.Files) Records { return Records{files} }

// Ledger returns what the host was like before us; known is false when nothing was ever changed.
func (r Records) Ledger(ctx context.Context) (ledger plan.Ledger, known bool, err error) {
	data, err := files.Read(ctx, r.files, nodespec.LedgerPath)
	if err != nil || data == nil {
		return plan.Ledger{}, false, err
	}
	if err := json.Unmarshal(data, &ledger); err != nil {
		return plan.Ledger{}, false, fmt.Errorf("read %s, which says what the host was like before: %w", nodespec.LedgerPath, err)
	}
	return ledger, true, nil
}

// SetLedger keeps the ledger.
func (r Records) SetLedger(ctx context.Context, ledger plan.Ledger) error {
	data, err := json.MarshalIndent(ledger, "", " ")
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	return files.Keep(ctx, r.files, nodespec.LedgerPath, data)
}

// ErrForeignSpec means that the NodeSpec on the host is not one of this release's agent.
var ErrForeignSpec = errors.New("it was not written by an agent of this release")

// Spec returns the NodeSpec that the host is held to; nil when there is none.
func (r Records) Spec(ctx context.Context) (*nodespec.NodeSpec, error) {
	data, err := files.Read(ctx, r.files, nodespec.SpecPath)
	if err != nil || data == nil {
		return nil, err
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", nodespec.SpecPath, ErrForeignSpec, err)
	}
	return &spec, nil
}

// SetSpec keeps the NodeSpec that the host is held to.
func (r Records) SetSpec(ctx context.Context, spec nodespec.NodeSpec) error {
	data, err := spec.Encode()
	if err != nil {
		return fmt.Errorf("encode the NodeSpec: %w", err)
	}
	return files.Keep(ctx, r.files, nodespec.SpecPath, data)
}

// Fallback returns the NodeSpec that a rollback goes back to; nil when none is kept, or one that no agent of this
// release has kept.
func (r Records) Fallback(ctx context.Context) (*nodespec.NodeSpec, error) {
	data, err := files.Read(ctx, r.files, nodespec.FallbackPath)
	if err != nil || data == nil {
		return nil, err
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nil, nil //nolint:nilerr // nobody can go back to it
	}
	return &spec, nil
}

// SetFallback keeps the NodeSpec that a rollback goes back to.
func (r Records) SetFallback(ctx context.Context, spec nodespec.NodeSpec) error {
	data, err := spec.Encode()
	if err != nil {
		return fmt.Errorf("encode the NodeSpec: %w", err)
	}
	return files.Keep(ctx, r.files, nodespec.FallbackPath, data)
}

// ForgetFallback keeps no NodeSpec for a rollback any more. None is no error.
func (r Records) ForgetFallback(ctx context.Context) error {
	if err := r.files.Remove(ctx, nodespec.FallbackPath); err != nil {
		return fmt.Errorf("remove %s: %w", nodespec.FallbackPath, err)
	}
	return nil
}

// Applied returns the digest of the spec that was last applied to its end.
func (r Records) Applied(ctx context.Context) (string, error) {
	data, err := files.Read(ctx, r.files, nodespec.AppliedPath)
	return string(bytes.TrimSpace(data)), err
}

// SetApplied keeps the digest of a spec that was applied to its end.
func (r Records) SetApplied(ctx context.Context, digest string) error {
	return files.Keep(ctx, r.files, nodespec.AppliedPath, []byte(digest))
}

// ForgetApplied says that no spec was applied to its end. None is no error.
func (r Records) ForgetApplied(ctx context.Context) error {
	if err := r.files.Remove(ctx, nodespec.AppliedPath); err != nil {
		return fmt.Errorf("remove %s: %w", nodespec.AppliedPath, err)
	}
	return nil
}
