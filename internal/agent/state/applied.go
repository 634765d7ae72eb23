package state

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Applied tells of the NodeSpec that was last applied to its end. It holds what an agent of another release must know
// of it without reading the NodeSpec itself. Its fields keep their names and meanings in all releases; a test holds
// them against the files of former ones.
type Applied struct {
	// Digest is the NodeSpec's digest, as the agent has computed it that has applied it.
	Digest string `json:"digest"`
	// File is the SHA-256 of the NodeSpec's file.
	File string `json:"file"`
	// Agent is the SHA-256 of that agent's program.
	Agent string `json:"agent"`
	// Releases are the folders of the releases that the NodeSpec names.
	Releases []string `json:"releases,omitempty"`
}

// Describe returns what is to be known of a NodeSpec that an agent has applied, with the file of its JSON form.
func Describe(spec nodespec.NodeSpec, document []byte, agent string) Applied {
	applied := Applied{Digest: spec.Digest(), File: plan.Digest(document), Agent: agent}
	for _, each := range spec.Releases {
		applied.Releases = append(applied.Releases, each.Directory)
	}
	return applied
}

// Applied returns what is known of the NodeSpec that was last applied to its end; the zero value when none was.
func (r Records) Applied(ctx context.Context) (Applied, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.AppliedPath)
	return understood(data), err
}

// understood decodes what is known of a NodeSpec. From what cannot be decoded nothing is concluded, as if it were not
// there.
func understood(data []byte) (applied Applied) {
	if json.Unmarshal(data, &applied) != nil {
		return Applied{}
	}
	return applied
}

// SetApplied keeps what is known of a NodeSpec that was applied to its end.
func (r Records) SetApplied(ctx context.Context, applied Applied) error {
	data, err := applied.encode()
	if err != nil {
		return err
	}
	return hostutil.KeepFile(ctx, r.files, nodespec.AppliedPath, data)
}

func (a Applied) encode() ([]byte, error) {
	data, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the applied NodeSpec: %w", err)
	}
	return data, nil
}

// ForgetApplied says that no NodeSpec was applied to its end. None is no error.
func (r Records) ForgetApplied(ctx context.Context) error { return r.forget(ctx, nodespec.AppliedPath) }

func (r Records) forget(ctx context.Context, path string) error {
	if err := r.files.Remove(ctx, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
