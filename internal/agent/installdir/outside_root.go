package installdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// checkForeignContent refuses a host if a user has created a directory of the node outside of C:\k, or an entry there
// that the node will use. The node's key and the Secrets of pods would be stored there. Nothing is changed: the
// steps of a plan restrict these directories, and check them again before any other write.
func (f *Directory) checkForeignContent(ctx context.Context) error {
	for _, directory := range nodespec.GuardedDirectories() {
		info, err := f.Host.Files.Stat(ctx, directory.Path)
		if errors.Is(err, host.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("inspect %s: %w", directory.Path, err)
		}
		fact := plan.FileFact{Directory: info.Directory, LinkTarget: info.LinkTarget, Foreign: info.Foreign}
		if err := stepFailure(plan.DescribeDirectoryConflict(info.Path, fact)); err != nil {
			return err
		}
	}
	for _, folder := range nodespec.NodeEntryDirectories() {
		if err := f.checkEntries(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

func (f *Directory) checkEntries(ctx context.Context, folder string) error {
	info, err := f.Host.Files.Stat(ctx, folder)
	if errors.Is(err, host.ErrNotExist) || err == nil && !info.Directory {
		return nil // the plan replaces no file
	}
	if err != nil {
		return fmt.Errorf("inspect %s: %w", folder, err)
	}
	entries, err := hostutil.ListDirectory(ctx, f.Host.Files, folder)
	if err != nil {
		return err
	}
	return stepFailure(plan.DescribeEntryConflict(folder, entries))
}

func stepFailure(obstacle string) error {
	if obstacle == "" {
		return nil
	}
	return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: obstacle}
}
