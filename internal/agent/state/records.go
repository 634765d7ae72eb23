// Package state writes the output of the agent for the operator and the files that the agent needs between two
// runs: the ledger, the NodeSpec, the rollback target, and the description of the applied NodeSpec. Only SYSTEM
// and administrators can read these files. Because the files may come from an agent of another release, the
// package makes no decisions from their content and preserves unknown fields. Output consists of the lines of a
// command and of failures for the operator, without secrets.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Records are the records of the agent on one host.
type Records struct{ files host.Files }

// NewRecords returns the records stored in the files of a host.
func NewRecords(files host.Files) Records { return Records{files} }

// Ledger returns the record of the original state of the host. Known is false if the host was never changed.
func (r Records) Ledger(ctx context.Context) (ledger plan.Ledger, known bool, err error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.LedgerPath)
	if err != nil || data == nil {
		return plan.Ledger{}, false, err
	}
	if err := json.Unmarshal(data, &ledger); err != nil {
		return plan.Ledger{}, false, fmt.Errorf("read %s, the record of the host's original state: %w", nodespec.LedgerPath, err)
	}
	return ledger, true, nil
}

// SetLedger writes the ledger. Content from a later agent that this agent does not know is preserved.
func (r Records) SetLedger(ctx context.Context, ledger plan.Ledger) error {
	data, err := json.MarshalIndent(ledger, "", " ")
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	present, err := hostutil.ReadFile(ctx, r.files, nodespec.LedgerPath)
	if err != nil {
		return err
	}
	if data, err = mergeUnknown(present, data); err != nil {
		return fmt.Errorf("preserve the content of %s: %w", nodespec.LedgerPath, err)
	}
	return hostutil.EnsureFile(ctx, r.files, nodespec.LedgerPath, data)
}

// UnknownFields returns the paths of the ledger fields that this agent does not know and therefore cannot restore or
// delete.
func (r Records) UnknownFields(ctx context.Context) ([]string, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.LedgerPath)
	if err != nil || data == nil {
		return nil, err
	}
	return unknownFields(data)
}

// ErrForeignSpec means that the NodeSpec on the host was not written by an agent of this release.
var ErrForeignSpec = errors.New("the NodeSpec was written by an agent of another release")

// Spec returns the desired NodeSpec of the host, or nil if there is none. It returns ErrForeignSpec for another
// schema version: an agent that does not know the complete schema must not configure the host with the
// NodeSpec.
func (r Records) Spec(ctx context.Context) (*nodespec.NodeSpec, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.SpecPath)
	if err != nil || data == nil {
		return nil, err
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", nodespec.SpecPath, ErrForeignSpec, err)
	}
	return &spec, nil
}

// StoredSpec returns the part of the desired NodeSpec that this agent can read, even if an agent of another release
// wrote the file. It returns nil if there is none. StoredSpec is only for callers that do not configure the host with
// the NodeSpec.
func (r Records) StoredSpec(ctx context.Context) (*nodespec.StoredSpec, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.SpecPath)
	if err != nil || data == nil {
		return nil, err
	}
	held, err := nodespec.DecodeStoredSpec(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", nodespec.SpecPath, ErrForeignSpec, err)
	}
	return &held, nil
}

// SetSpec writes the JSON form of the desired NodeSpec of the host exactly as received.
func (r Records) SetSpec(ctx context.Context, document []byte) error {
	return hostutil.EnsureFile(ctx, r.files, nodespec.SpecPath, document)
}
