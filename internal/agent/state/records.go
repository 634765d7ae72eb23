// Package state writes the agent's answers to the operator and keeps the files that the agent needs between two runs: the
// ledger, the NodeSpec, the fallback, and what was applied. Only SYSTEM and administrators can read these files. An agent
// of another release may have written them: the package decides nothing from them, and preserves unknown fields. Answers
// are the lines of a verb and errors in the operator's terms; they contain no secrets.
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

// Records are the agent's records on one host.
type Records struct{ files host.Files }

// NewRecords returns the records that lie in a host's files.
func NewRecords(files host.Files) Records { return Records{files} }

// Ledger returns what the host was like before us; known is false when nothing was ever changed.
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

// SetLedger keeps the ledger. What a later agent has written into it and this one does not know stays there.
func (r Records) SetLedger(ctx context.Context, ledger plan.Ledger) error {
	data, err := json.MarshalIndent(ledger, "", " ")
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	present, err := hostutil.ReadFile(ctx, r.files, nodespec.LedgerPath)
	if err != nil {
		return err
	}
	if data, err = carry(present, data); err != nil {
		return fmt.Errorf("preserve the content of %s: %w", nodespec.LedgerPath, err)
	}
	return hostutil.KeepFile(ctx, r.files, nodespec.LedgerPath, data)
}

// Unknown names what the ledger holds and this agent does not know: it can neither restore nor forget that.
func (r Records) Unknown(ctx context.Context) ([]string, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.LedgerPath)
	if err != nil || data == nil {
		return nil, err
	}
	return unknown(data)
}

// ErrForeignSpec means that the NodeSpec on the host is not one of this release's agent.
var ErrForeignSpec = errors.New("it was not written by an agent of this release")

// Spec returns the NodeSpec that the host is held to; nil when there is none. It returns ErrForeignSpec for one of
// another schema version: an agent that does not know it whole must not change the host to match it.
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

// Held returns what this agent can read of the NodeSpec that the host is held to, also when an agent of another release
// has written it; nil when there is none. It is for what does not bring the host to the NodeSpec.
func (r Records) Held(ctx context.Context) (*nodespec.Held, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.SpecPath)
	if err != nil || data == nil {
		return nil, err
	}
	held, err := nodespec.DecodeHeld(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", nodespec.SpecPath, ErrForeignSpec, err)
	}
	return &held, nil
}

// SetSpec keeps the JSON form of the NodeSpec that the host is held to, as it was sent.
func (r Records) SetSpec(ctx context.Context, document []byte) error {
	return hostutil.KeepFile(ctx, r.files, nodespec.SpecPath, document)
}
