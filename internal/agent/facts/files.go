package facts

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// MaxConfigFile is the maximum size in bytes for inspecting and keeping the content of a file. Configuration files
// are much smaller.
const MaxConfigFile = 1 << 20

// gatherFiles inspects all paths named by the spec or the ledger.
func (g *gatherer) gatherFiles(ctx context.Context) error {
	g.facts.Files = map[string]plan.FileFact{}
	for _, path := range plan.Paths(g.facts.Ledger, g.spec) {
		if err := g.gatherFile(ctx, path); err != nil {
			return err
		}
	}
	if err := g.gatherLegacyFiles(ctx); err != nil {
		return err
	}
	for _, release := range g.spec.Releases {
		for _, file := range release.Files {
			g.gatherPayloadFile(release.Path(file))
		}
		g.gatherPayloadFile(release.Manifest())
	}
	return nil
}

// gatherLegacyFiles finds files that a legacy operator may have left. Their content is not needed.
func (g *gatherer) gatherLegacyFiles(ctx context.Context) error {
	paths := plan.LegacyPaths()
	for _, folder := range plan.LegacyListings() {
		entries, err := hostutil.ListDirectory(ctx, g.Host.Files, folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			paths = append(paths, plan.LegacyEntries(folder, entry.Name)...)
		}
	}
	for _, path := range paths {
		if _, known := g.facts.Files[path]; known {
			continue
		}
		info, err := g.Host.Files.Stat(ctx, path)
		if errors.Is(err, host.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("inspect %s: %w", path, err)
		}
		g.facts.Files[path] = plan.FileFact{
			Directory: info.Directory, LinkTarget: info.LinkTarget, Access: info.Access, Foreign: info.Foreign, Size: info.Size,
		}
	}
	return nil
}

// gatherPayloadFile copies the facts of a file of a release.
func (g *gatherer) gatherPayloadFile(path string) {
	if fact, there := g.found.File(path); there {
		g.facts.Files[path] = fact
	}
}

func (g *gatherer) gatherFile(ctx context.Context, path string) error {
	info, err := g.Host.Files.Stat(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect %s: %w", path, err)
	}
	fact := plan.FileFact{Directory: info.Directory, LinkTarget: info.LinkTarget, Access: info.Access, Foreign: info.Foreign}
	switch {
	case info.LinkTarget != "":
	case info.Directory:
		fact.Entries, fact.Listed, err = g.listEntries(ctx, path)
	default:
		fact.Size = info.Size
		err = g.readContent(ctx, path, &fact)
	}
	if err != nil {
		return err
	}
	g.facts.Files[path] = fact
	return nil
}

// listEntries returns the names in a directory that may have existed before or is not named by the spec. Entries of
// the operator's own directories are not needed.
func (g *gatherer) listEntries(ctx context.Context, path string) (names []string, listed bool, err error) {
	before, known := g.facts.Ledger.Paths[path]
	if known && !before.Existed && !nodespec.IsSamePath(path, nodespec.Root) && plan.IsNamed(path, g.spec) {
		return nil, false, nil
	}
	infos, err := g.Host.Files.ReadDir(ctx, path)
	if err != nil {
		return nil, false, fmt.Errorf("list %s: %w", path, err)
	}
	names = make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return names, true, nil
}

func (g *gatherer) readContent(ctx context.Context, path string, fact *plan.FileFact) error {
	if fact.Size > MaxConfigFile {
		sum, err := hostutil.FileDigest(ctx, g.Host.Files, path)
		fact.SHA256 = sum
		return err
	}
	data, err := hostutil.ReadFile(ctx, g.Host.Files, path)
	if err != nil {
		return err
	}
	fact.SHA256, fact.Text = plan.Digest(data), plan.TextDigest(data)
	return nil
}
