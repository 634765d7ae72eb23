package installdir

import (
	"context"
	"fmt"
	"maps"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// isRecorded reports whether the ledger names a path, provided that only administrators could write the ledger.
func (f *Directory) isRecorded(ctx context.Context, path string) (bool, error) {
	if own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot); err != nil || !isClosed(own) {
		return false, nil //nolint:nilerr // there is no such ledger
	}
	ledger, _, err := f.Records.Ledger(ctx)
	_, known := ledger.Paths[path]
	return known, err
}

// recordOpenRoot records that C:\k was open, before C:\k is closed and until the ledger has the record. A directory
// without foreign content is not restored, and a directory in the ledger needs no note.
func (f *Directory) recordOpenRoot(ctx context.Context) error {
	known, err := f.isRecorded(ctx, nodespec.Root)
	if err != nil {
		return err
	}
	entries, err := hostutil.ListDirectory(ctx, f.Host.Files, nodespec.Root)
	if err != nil {
		return err
	}
	others := false
	for _, entry := range entries {
		others = others || !nodespec.IsSamePath(entry.Path, nodespec.AgentRoot)
	}
	if known || !others {
		return nil
	}
	return hostutil.EnsureFile(ctx, f.Host.Files, nodespec.FoundPath, []byte(host.AccessInherited))
}

// hasOpenRecord reports whether C:\k was restricted by the agent and the ledger may not record that yet.
func (f *Directory) hasOpenRecord(ctx context.Context) (bool, error) {
	note, err := hostutil.ReadFile(ctx, f.Host.Files, nodespec.FoundPath)
	return note != nil, err
}

// WithOriginalAccess returns the facts with the original access of C:\k, for the ledger.
func (f *Directory) WithOriginalAccess(ctx context.Context, facts plan.Facts) (plan.Facts, error) {
	open, err := f.hasOpenRecord(ctx)
	root, there := facts.Files[nodespec.Root]
	if err != nil || !open || !there {
		return facts, err
	}
	root.Access = host.AccessInherited
	facts.Files = maps.Clone(facts.Files)
	facts.Files[nodespec.Root] = root
	return facts, nil
}

// Reopen restores the access of C:\k if the agent has restricted it. Reopen is only for a host without a ledger
// and without any other change.
func (f *Directory) Reopen(ctx context.Context) error {
	open, err := f.hasOpenRecord(ctx)
	if err != nil || !open {
		return err
	}
	if err := f.Host.Tree.MakeDirectory(ctx, nodespec.Root, host.AccessInherited); err != nil {
		return fmt.Errorf("restore %s: %w", nodespec.Root, err)
	}
	return nil
}
