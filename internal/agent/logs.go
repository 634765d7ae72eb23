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

// logKeeper rotates the logs of programs that append to a file and never rotate it, which the spec names. All others of the node
// rotate their logs themselves.
type logKeeper struct {
	*agent
	log     *serviceLog
	due     time.Time
	trouble string            // that was told last, without what is new each time
	useless map[string]string // copies of logs that were not emptied, by the log's path; no more than one of each
}

// look rotates what is too large and deletes what is too old, if it is time to look for that.
func (l *logKeeper) look(ctx context.Context, logs []nodespec.Log) {
	if now := l.clock.Now(); !now.Before(l.due) {
		l.due = now.Add(LogCheck)
	} else {
		return
	}
	var failures []error
	trouble := ""
	for _, log := range logs {
		err := errors.Join(l.rotate(ctx, log), l.clean(ctx, log))
		if err == nil || ctx.Err() != nil {
			continue
		}
		failures = append(failures, err)
		trouble += log.Path + ": " + causes(err) + "\n"
	}
	if trouble != l.trouble && trouble != "" {
		l.log.printf(ctx, "logs are not kept as they should be: %s", errors.Join(failures...))
	}
	l.trouble = trouble
}

// causes are the innermost errors of an error. Around them are names that hold the time.
func causes(err error) string {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var all []string
		for _, each := range several.Unwrap() {
			all = append(all, causes(each))
		}
		return strings.Join(all, ", ")
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// rotate copies a log that is too large to a file of another name and empties it.
func (l *logKeeper) rotate(ctx context.Context, log nodespec.Log) error {
	if err := l.deleteUseless(ctx, log); err != nil {
		return err
	}
	large, err := l.tooLarge(ctx, log)
	if err != nil || !large {
		return err
	}
	to := rotatedPath(log.Path, l.clock.Now())
	err = l.host.Logs.Rotate(ctx, log.Path, to)
	switch {
	case err == nil, errors.Is(err, host.ErrNotExist):
		return nil
	case errors.Is(err, host.ErrExist):
		return fmt.Errorf("rotate %s: %w", log.Path, err) // what is there is not of now
	}
	err = fmt.Errorf("rotate %s: %w", log.Path, err)
	if large, unknown := l.tooLarge(ctx, log); unknown != nil || !large {
		return err // a copy may be all that there is
	}
	if l.useless == nil {
		l.useless = map[string]string{}
	}
	l.useless[log.Path] = to
	return errors.Join(err, l.deleteUseless(ctx, log))
}

// tooLarge reports whether a log is to be rotated.
func (l *logKeeper) tooLarge(ctx context.Context, log nodespec.Log) (bool, error) {
	info, err := l.host.Files.Stat(ctx, log.Path)
	if errors.Is(err, host.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", log.Path, err)
	}
	return log.MaxBytes > 0 && info.Size > log.MaxBytes && info.LinkTarget == "", nil
}

// deleteUseless deletes a copy that a failed rotation has left, if it has: each try would leave one more, as large as the log.
func (l *logKeeper) deleteUseless(ctx context.Context, log nodespec.Log) error {
	path, known := l.useless[log.Path]
	if !known {
		return nil
	}
	if err := l.host.Files.Remove(ctx, path); err != nil {
		return fmt.Errorf("delete %s, a copy of a log that was not emptied: %w", path, err)
	}
	delete(l.useless, log.Path)
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
