package execute

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func (e *Executor) makeDirectory(ctx context.Context, directory nodespec.Directory) error {
	if fact, there := e.Facts.Files[directory.Path]; there {
		if obstacle := plan.DescribeDirectoryConflict(directory.Path, fact); obstacle != "" {
			return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: obstacle}
		}
	}
	access := cmp.Or(directory.Access, host.AccessInherited)
	if err := e.Host.Tree.MakeDirectory(ctx, directory.Path, access); err != nil {
		return fmt.Errorf("create directory %s: %w", directory.Path, err)
	}
	if !access.IsRestricted() {
		return nil
	}
	// From now on only administrators can replace the directory, provided that the same applies to the parent
	// directories. A user may have replaced the directory after the facts were gathered.
	now, err := e.Host.Files.Stat(ctx, directory.Path)
	if err != nil {
		return fmt.Errorf("inspect directory %s: %w", directory.Path, err)
	}
	if !now.Directory || now.LinkTarget != "" || now.Access != access || now.Foreign {
		return fmt.Errorf("a user of the host replaced %s while the agent was restricting it to administrators", directory.Path)
	}
	entries, err := hostutil.ListDirectory(ctx, e.Host.Files, directory.Path)
	if err != nil {
		return err
	}
	if obstacle := plan.DescribeEntryConflict(directory.Path, entries); obstacle != "" {
		return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: obstacle}
	}
	return nil
}

func (e *Executor) writeFile(ctx context.Context, file nodespec.File) error {
	if err := e.clearLink(ctx, file.Path); err != nil {
		return err
	}
	options := host.WriteOptions{Access: plan.FileAccess(file)}
	if err := e.Host.Files.Write(ctx, file.Path, bytes.NewReader(file.Bytes()), options); err != nil {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	return nil
}

// clearLink removes a link at the path of a file, so that the target of the link is not overwritten.
func (e *Executor) clearLink(ctx context.Context, path string) error {
	if e.Facts.Files[path].LinkTarget == "" {
		return nil
	}
	if err := e.Host.Files.Remove(ctx, path); err != nil {
		return fmt.Errorf("remove link %s: %w", path, err)
	}
	return nil
}

func (e *Executor) makeLink(ctx context.Context, link nodespec.Link) error {
	if fact, there := e.Facts.Files[link.Path]; there && fact.LinkTarget == "" && !fact.Directory {
		// The content of an original file is in the ledger.
		if err := e.Host.Files.Remove(ctx, link.Path); err != nil {
			return fmt.Errorf("remove existing file %s: %w", link.Path, err)
		}
	}
	if err := e.Host.Tree.Symlink(ctx, link.Target, link.Path); err != nil {
		return fmt.Errorf("create symbolic link %s to %s: %w", link.Path, link.Target, err)
	}
	return nil
}

func (e *Executor) removePath(ctx context.Context, o plan.RemovePath) error {
	if o.Keep == nil {
		return e.removeAll(ctx, o.Path)
	}
	entries, err := hostutil.ListDirectory(ctx, e.Host.Files, o.Path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		kept := slices.ContainsFunc(o.Keep, func(name string) bool { return strings.EqualFold(name, entry.Name) })
		if kept {
			continue
		}
		e.reportProgress("removing %s", entry.Path)
		if err := e.removeAll(ctx, entry.Path); err != nil {
			return err
		}
	}
	return nil
}

func (e *Executor) removeAll(ctx context.Context, path string) error {
	e.destroyLayers(ctx, path)
	remove := func(ctx context.Context) error { return e.Host.Files.Remove(ctx, path) }
	// A directory of container images has several hundred thousand files.
	if err := e.withProgress(ctx, 0, "removing "+path, remove); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
