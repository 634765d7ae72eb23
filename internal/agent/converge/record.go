package converge

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// recordStart records the original state of the host, and the desired spec.
func (h *Host) recordStart(ctx context.Context, spec desiredSpec, found plan.Facts) error {
	found, err := h.Directory.WithOriginalAccess(ctx, found)
	if err != nil {
		return err
	}
	ledger := plan.Record(found, spec.NodeSpec)
	if err := h.keepContents(ctx, found.Ledger, ledger); err != nil {
		return err
	}
	if err := h.Records.SetLedger(ctx, ledger); err != nil {
		return err
	}
	return h.Records.SetSpec(ctx, spec.document)
}

// keepContents adds the content of files that are new in the ledger and existed before.
func (h *Host) keepContents(ctx context.Context, known, ledger plan.Ledger) error {
	for path, before := range ledger.Paths {
		if _, old := known.Paths[path]; old || !before.Existed || before.Directory || before.LinkTarget != "" {
			continue
		}
		info, err := h.Host.Files.Stat(ctx, path)
		if err != nil {
			return fmt.Errorf("inspect %s: %w", path, err)
		}
		if info.Size > facts.MaxConfigFile {
			return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf(
				"file %s exists and is too large to back up (%d bytes); move it away", path, info.Size)}
		}
		if before.Content, err = hostutil.ReadFile(ctx, h.Host.Files, path); err != nil {
			return err
		}
		ledger.Paths[path] = before
	}
	return nil
}

// recordApplied records that the spec was applied completely, and removes obsolete records.
func (h *Host) recordApplied(ctx context.Context, spec desiredSpec, found plan.Facts, left plan.Plan) error {
	if err := h.removeObsolete(ctx, spec.NodeSpec, found); err != nil {
		return err
	}
	if len(left.Needs) > 0 {
		return nil
	}
	return h.Records.SetApplied(ctx, state.Describe(spec.NodeSpec, spec.document, found.Agent.SHA256))
}

// removeObsolete removes obsolete entries from the ledger and obsolete files from the agent's directory.
func (h *Host) removeObsolete(ctx context.Context, spec nodespec.NodeSpec, found plan.Facts) error {
	if err := h.Records.SetLedger(ctx, plan.Prune(found, spec)); err != nil {
		return err
	}
	fallback, err := h.Records.RollbackTarget(ctx)
	if err != nil {
		return err
	}
	h.Directory.Tidy(ctx, spec, fallback != nil, found)
	return nil
}
