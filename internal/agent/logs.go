package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// logKeeper rotates the logs of programs that append to a file and never rotate it: containerd, windows_exporter. All others of the node
// rotate their logs themselves.
type logKeeper struct {
	*agent
	log     *serviceLog
	due     time.Time
	trouble string // that was told last
}

// look rotates what is too large and deletes what is too old, if it is time to look for that.
func (l *logKeeper) look(ctx context.Context, logs []nodespec.Log) {
	if now := l.clock.Now(); !now.Before(l.due) {
		l.due = now.Add(LogCheck)
	} else {
		return
	}
	var failures []error
	for _, log := range logs {
		failures = append(failures, l.rotate(ctx, log), l.clean(ctx, log))
	}
	trouble := ""
	if err := errors.Join(failures...); err != nil && ctx.Err() == nil {
		trouble = err.Error()
	}
	if trouble != l.trouble && trouble != "" {
		l.log.printf(ctx, "logs are not kept as they should be: %s", trouble)
	}
	l.trouble = trouble
}

// rotate copies a log that is too large to a file of another name and empties it.
func (l *logKeeper) rotate(ctx context.Context, log nodespec.Log) error {
	info, err := l.host.Files.Stat(ctx, log.Path)
	if errors.Is(err, host.ErrNotExist) || err == nil && (log.MaxBytes <= 0 || info.Size <= log.MaxBytes || info.LinkTarget != "") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", log.Path, err)
	}
	err = l.host.Logs.Rotate(ctx, log.Path, rotatedPath(log.Path, l.clock.Now()))
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("rotate %s: %w", log.Path, err)
	}
	return nil
}

// clean deletes rotated files of a log that are too old. Others in its folder are not its business.
func (l *logKeeper) clean(ctx context.Context, log nodespec.Log) error {
	if log.MaxAge <= 0 {
		return nil
	}
	folder, _ := splitPath(log.Path)
	entries, err := l.host.Files.ReadDir(ctx, folder)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	for _, entry := range entries {
		at, rotated := rotatedAt(log.Path, entry.Name)
		if !rotated || entry.Directory || l.clock.Since(at) <= log.MaxAge {
			continue
		}
		if err := l.host.Files.Remove(ctx, entry.Path); err != nil {
			return fmt.Errorf("delete %s, which is too old: %w", entry.Path, err)
		}
	}
	return nil
}

// rotatedPath is the other name of a log that is rotated away at the time.
func rotatedPath(path string, at time.Time) string {
	stem, extension := splitExtension(path)
	return stem + "-" + at.UTC().Format(rotatedLayout) + extension
}

// rotatedAt tells when a file was rotated away, and whether its name is one that rotatedPath gives for the log.
func rotatedAt(path, name string) (at time.Time, rotated bool) {
	_, own := splitPath(path)
	stem, extension := splitExtension(strings.ToLower(own))
	stamp, prefixed := strings.CutPrefix(strings.ToLower(name), stem+"-")
	stamp, suffixed := strings.CutSuffix(stamp, extension)
	at, err := time.Parse(rotatedLayout, stamp)
	return at, prefixed && suffixed && err == nil
}

func splitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:max(i, 0)], path[i+1:]
}

func splitExtension(path string) (stem, extension string) {
	_, name := splitPath(path)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return path[:len(path)-len(name)+i], name[i:]
	}
	return path, ""
}
