package installdir

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Tidy removes used inputs and former agents that do not run. While a rollback target is kept, all agents are
// kept: one applied the rollback target and performs a rollback, another applies the next spec again. Files
// that cannot be removed now are removed after the next apply.
func (f *Directory) Tidy(ctx context.Context, spec nodespec.NodeSpec, fallback bool, facts plan.Facts) {
	service := facts.Services[nodespec.ServiceAgent]
	keep := []string{f.Program.Path, service.CommandLine, service.RunningCommandLine}
	var paths []string
	for _, folder := range []string{nodespec.InboxRoot, nodespec.AgentRoot} {
		entries, err := f.Host.Files.ReadDir(ctx, folder)
		if err != nil {
			continue // does not exist
		}
		for _, entry := range entries {
			former := !fallback && entry.Directory && len(entry.Name) == 12 && !slices.ContainsFunc(keep, func(text string) bool {
				return plan.HasProgramIn(text, entry.Path)
			})
			if folder == nodespec.InboxRoot || former {
				paths = append(paths, entry.Path)
			}
		}
	}
	candidates := []string{nodespec.IncomingRoot, nodespec.LandingRoot, nodespec.FoundPath}
	for _, each := range spec.AllIdentities() {
		if known := facts.IdentityOf(each.Name); known.Current != nil && known.Request == "" {
			candidates = append(candidates, identity.PendingFile(each)) // the certificate for the request is in use
		}
	}
	for _, path := range candidates {
		if _, err := f.Host.Files.Stat(ctx, path); err == nil && !nodespec.IsWithin(f.Program.Path, path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		_ = f.Host.Files.Remove(ctx, path)
	}
}
