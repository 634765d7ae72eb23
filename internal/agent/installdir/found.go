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

// recorded reports whether a ledger that only administrators could write names a path.
func (f *Folder) recorded(ctx context.Context, path string) (bool, error) {
	if own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot); err != nil || !closed(own) {
		return false, nil //nolint:nilerr // there is no such ledger
	}
	ledger, _, err := f.Records.Ledger(ctx)
	_, known := ledger.Paths[path]
	return known, err
}

// noteRoot remembers that C:\k was open, before it is closed, until the ledger does. A folder with nothing of anybody's
// in it is not given back, and one that the ledger knows needs no note.
func (f *Folder) noteRoot(ctx context.Context) error {
	known, err := f.recorded(ctx, nodespec.Root)
	if err != nil {
		return err
	}
	entries, err := hostutil.ListDirectory(ctx, f.Host.Files, nodespec.Root)
	if err != nil {
		return err
	}
	others := false
	for _, entry := range entries {
		others = others || !nodespec.SamePath(entry.Path, nodespec.AgentRoot)
	}
	if known || !others {
		return nil
	}
	return hostutil.KeepFile(ctx, f.Host.Files, nodespec.FoundPath, []byte(host.AccessInherited))
}

// foundOpen reports whether C:\k was closed to others and the ledger may not say so.
func (f *Folder) foundOpen(ctx context.Context) (bool, error) {
	note, err := hostutil.ReadFile(ctx, f.Host.Files, nodespec.FoundPath)
	return note != nil, err
}

// AsFound returns the facts with the access that C:\k had before it was closed, for the ledger.
func (f *Folder) AsFound(ctx context.Context, facts plan.Facts) (plan.Facts, error) {
	open, err := f.foundOpen(ctx)
	root, there := facts.Files[nodespec.Root]
	if err != nil || !open || !there {
		return facts, err
	}
	root.Access = host.AccessInherited
	facts.Files = maps.Clone(facts.Files)
	facts.Files[nodespec.Root] = root
	return facts, nil
}

// Reopen gives C:\k back that was closed and into which nothing else was put.
func (f *Folder) Reopen(ctx context.Context) error {
	open, err := f.foundOpen(ctx)
	if err != nil || !open {
		return err
	}
	if err := f.Host.Tree.MakeDirectory(ctx, nodespec.Root, host.AccessInherited); err != nil {
		return fmt.Errorf("restore %s: %w", nodespec.Root, err)
	}
	return nil
}
