package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// watcher detects changes that require a comparison with the spec, at low cost. It queries the node's services,
// and the size and time of the spec file and of all files named by the spec, but reads no files.
type watcher struct {
	host    host.Host
	records state.Records

	spec     *nodespec.NodeSpec
	specInfo host.FileInfo // of the file that spec was read from
	seen     string        // at the last poll
	allRun   bool          // all services of the node ran at the last poll, except the agent's own
	up       bool          // the services awaited after a boot ran at the last poll
}

// pollState reports whether the state differs from the last poll. Errors are left to the comparison, which reports
// the cause.
func (w *watcher) pollState(ctx context.Context) bool {
	if err := w.readSpec(ctx); err != nil {
		return false
	}
	if w.spec == nil {
		return w.updateState("no spec")
	}
	var seen strings.Builder
	for _, path := range append(watchedPaths(*w.spec), nodespec.SpecPath) {
		info, err := w.host.Files.Stat(ctx, path)
		if err != nil && !errors.Is(err, host.ErrNotExist) {
			return false
		}
		fmt.Fprintf(&seen, "%s %d %d %s %s\n", path, info.Size, info.Modified.UnixNano(), info.LinkTarget, info.Access)
	}
	names := make([]string, len(w.spec.Services))
	for i, service := range w.spec.Services {
		names[i] = service.Name
	}
	if len(names) > 0 {
		services, err := w.host.Services.Query(ctx, names...)
		if err != nil {
			return false
		}
		w.up, w.allRun = isUp(*w.spec, services), len(services) == len(names)
		for _, service := range services {
			w.allRun = w.allRun && (service.State == host.ServiceRunning || strings.EqualFold(service.Name, nodespec.ServiceAgent))
			fmt.Fprintf(&seen, "%s %s %d %s %s\n", service.Name, service.State, service.PID, service.StartType, service.CommandLine)
		}
	}
	return w.updateState(seen.String())
}

func (w *watcher) updateState(seen string) bool {
	changed := seen != w.seen
	w.seen = seen
	return changed
}

// readSpec reads the spec if its file has changed.
func (w *watcher) readSpec(ctx context.Context) error {
	info, err := w.host.Files.Stat(ctx, nodespec.SpecPath)
	if errors.Is(err, host.ErrNotExist) {
		w.spec = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect %s: %w", nodespec.SpecPath, err)
	}
	if w.spec != nil && info.Size == w.specInfo.Size && info.Modified.Equal(w.specInfo.Modified) {
		return nil
	}
	if w.spec, err = w.records.Spec(ctx); err != nil {
		return err
	}
	w.specInfo = info
	return nil
}

// watchedPaths returns the files created from the spec. Directories are excluded because the time of a
// directory changes with its content.
func watchedPaths(spec nodespec.NodeSpec) []string {
	var paths []string
	for _, file := range spec.Files {
		paths = append(paths, file.Path)
	}
	for _, link := range spec.Links {
		paths = append(paths, link.Path)
	}
	for _, release := range spec.Releases {
		paths = append(paths, release.Manifest())
		for _, file := range release.Files {
			paths = append(paths, release.Path(file))
		}
	}
	return paths
}
