package installdir

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Tidy removes inputs that were used and former agents that do not run. While a fallback is kept, all agents stay: one
// of them applied it and rolls the host back, and another applies its successor again. What cannot be removed now is
// removed after the next apply.
func (f *Folder) Tidy(ctx context.Context, spec nodespec.NodeSpec, fallback bool, facts plan.Facts) {
	service := facts.Services[nodespec.ServiceAgent]
	keep := []string{f.Program.Path, service.CommandLine, service.RunningCommandLine}
	var paths []string
	for _, folder := range []string{nodespec.InboxRoot, nodespec.AgentRoot} {
		entries, err := f.Host.Files.ReadDir(ctx, folder)
		if err != nil {
			continue // not there
		}
		for _, entry := range entries {
			former := !fallback && entry.Directory && len(entry.Name) == 12 && !slices.ContainsFunc(keep, func(text string) bool {
				return plan.Mentions(text, entry.Path)
			})
			if folder == nodespec.InboxRoot || former {
				paths = append(paths, entry.Path)
			}
		}
	}
	candidates := []string{nodespec.IncomingRoot, nodespec.LandingRoot, nodespec.FoundPath}
	for _, each := range spec.AllIdentities() {
		if known := facts.IdentityOf(each.Name); known.Current != nil && known.Request == "" {
			candidates = append(candidates, identity.PendingFile(each)) // its certificate is in use
		}
	}
	for _, path := range candidates {
		if _, err := f.Host.Files.Stat(ctx, path); err == nil && !nodespec.Within(f.Program.Path, path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		_ = f.Host.Files.Remove(ctx, path)
	}
}
