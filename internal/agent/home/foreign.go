package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/files"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// refuseForeign refuses a host on which a user has made one of the node's folders outside of C:\k, or what lies directly
// in the kubelet's: its key and the Secrets of pods would lie there. Nothing is changed: the steps of a plan close these
// folders, and refuse them again, before anything is written below.
func (f *Folder) refuseForeign(ctx context.Context) error {
	for _, directory := range nodespec.GuardedDirectories() {
		info, err := f.Host.Files.Stat(ctx, directory.Path)
		if errors.Is(err, host.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", directory.Path, err)
		}
		if err := refusal(info.Path, plan.FileFact{Directory: info.Directory, LinkTarget: info.LinkTarget, Foreign: info.Foreign}); err != nil {
			return err
		}
	}
	entries, err := files.List(ctx, f.Host.Files, nodespec.KubeletDirectory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := refusal(entry.Path, plan.FileFact{Directory: true, Foreign: entry.Foreign}); err != nil {
			return err
		}
	}
	return nil
}

func refusal(path string, fact plan.FileFact) error {
	obstacle := plan.FolderObstacle(path, fact)
	if obstacle == "" {
		return nil
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: obstacle}
}
