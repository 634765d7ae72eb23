package state

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Applied describes the last completely applied NodeSpec, with the facts that an agent of another release needs
// without reading the NodeSpec itself. Field names and meanings are the same in all releases; a test checks
// them against files of former releases.
type Applied struct {
	// Digest is the digest of the NodeSpec, computed by the agent that applied the NodeSpec.
	Digest string `json:"digest"`
	// File is the SHA-256 of the NodeSpec file.
	File string `json:"file"`
	// Agent is the SHA-256 of the program of that agent.
	Agent string `json:"agent"`
	// Releases are the directories of the releases named by the NodeSpec.
	Releases []string `json:"releases,omitempty"`
}

// Describe returns the description of a NodeSpec applied by an agent, from the spec and the file with its JSON
// form.
func Describe(spec nodespec.NodeSpec, document []byte, agent string) Applied {
	applied := Applied{Digest: spec.Digest(), File: plan.Digest(document), Agent: agent}
	for _, each := range spec.Releases {
		applied.Releases = append(applied.Releases, each.Directory)
	}
	return applied
}

// Applied returns the description of the last completely applied NodeSpec, or the zero value if there is none.
func (r Records) Applied(ctx context.Context) (Applied, error) {
	data, err := hostutil.ReadFile(ctx, r.files, nodespec.AppliedPath)
	return decodeApplied(data), err
}

// decodeApplied decodes the description of a NodeSpec. An undecodable description is treated as missing.
func decodeApplied(data []byte) (applied Applied) {
	if json.Unmarshal(data, &applied) != nil {
		return Applied{}
	}
	return applied
}

// SetApplied records the description of a completely applied NodeSpec.
func (r Records) SetApplied(ctx context.Context, applied Applied) error {
	data, err := applied.encodeJSON()
	if err != nil {
		return err
	}
	return hostutil.EnsureFile(ctx, r.files, nodespec.AppliedPath, data)
}

func (a Applied) encodeJSON() ([]byte, error) {
	data, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the applied NodeSpec: %w", err)
	}
	return data, nil
}

// RemoveApplied removes the record of the applied NodeSpec. A missing record is not an error.
func (r Records) RemoveApplied(ctx context.Context) error {
	return r.removeFile(ctx, nodespec.AppliedPath)
}

func (r Records) removeFile(ctx context.Context, path string) error {
	if err := r.files.Remove(ctx, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
