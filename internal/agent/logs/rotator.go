package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Rotator rotates the logs named by the spec, whose programs append to a file without rotation.
type Rotator struct {
	host  host.Host
	clock clock.PassiveClock
	log   *ServiceLog

	due          time.Time
	lastProblem  string            // the last reported problem, without varying details
	failedCopies map[string]string // copies of logs that could not be truncated, by log path; at most one for each log
}

// NewRotator returns a Rotator that logs its failures.
func NewRotator(h host.Host, clock clock.PassiveClock, log *ServiceLog) *Rotator {
	return &Rotator{host: h, clock: clock, log: log}
}

// RotateIfDue rotates oversized logs and deletes expired files, if a check is due.
func (k *Rotator) RotateIfDue(ctx context.Context, logs []nodespec.Log) {
	if now := k.clock.Now(); !now.Before(k.due) {
		k.due = now.Add(timeouts.LogCheckInterval)
	} else {
		return
	}
	var failures []error
	trouble := ""
	for _, log := range logs {
		err := errors.Join(k.rotateLog(ctx, log), k.deleteExpired(ctx, log))
		if err == nil || ctx.Err() != nil {
			continue
		}
		failures = append(failures, err)
		trouble += log.Path + ": " + innermostErrors(err) + "\n"
	}
	if trouble != k.lastProblem && trouble != "" {
		k.log.Printf(ctx, "log rotation failed: %s", errors.Join(failures...))
	}
	k.lastProblem = trouble
}

// innermostErrors returns the innermost errors of an error. The wrapping errors contain file names with times.
func innermostErrors(err error) string {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var all []string
		for _, each := range several.Unwrap() {
			all = append(all, innermostErrors(each))
		}
		return strings.Join(all, ", ")
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// rotateLog copies an oversized log to another file and truncates the log.
func (k *Rotator) rotateLog(ctx context.Context, log nodespec.Log) error {
	if err := k.deleteFailedCopy(ctx, log); err != nil {
		return err
	}
	large, err := k.needsRotation(ctx, log)
	if err != nil || !large {
		return err
	}
	to := rotatedPath(log.Path, k.clock.Now())
	err = k.host.Logs.Rotate(ctx, log.Path, to)
	switch {
	case err == nil, errors.Is(err, host.ErrNotExist):
		return nil
	case errors.Is(err, host.ErrExist):
		return fmt.Errorf("rotate %s: %w", log.Path, err) // the existing file is from an earlier rotation
	}
	err = fmt.Errorf("rotate %s: %w", log.Path, err)
	if large, unknown := k.needsRotation(ctx, log); unknown != nil || !large {
		return err // the copy may be the only one left
	}
	if k.failedCopies == nil {
		k.failedCopies = map[string]string{}
	}
	k.failedCopies[log.Path] = to
	return errors.Join(err, k.deleteFailedCopy(ctx, log))
}

// needsRotation reports whether a log must be rotated.
func (k *Rotator) needsRotation(ctx context.Context, log nodespec.Log) (bool, error) {
	info, err := k.host.Files.Stat(ctx, log.Path)
	if errors.Is(err, host.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect %s: %w", log.Path, err)
	}
	return log.MaxBytes > 0 && info.Size > log.MaxBytes && info.LinkTarget == "", nil
}

// deleteFailedCopy deletes the copy left by a failed rotation: each retry would add another copy as large as the
// log.
func (k *Rotator) deleteFailedCopy(ctx context.Context, log nodespec.Log) error {
	path, known := k.failedCopies[log.Path]
	if !known {
		return nil
	}
	if err := k.host.Files.Remove(ctx, path); err != nil {
		return fmt.Errorf("delete %s, the copy of a log that was not truncated: %w", path, err)
	}
	delete(k.failedCopies, log.Path)
	return nil
}

// deleteExpired deletes expired rotated files of a log. Other files in the directory are not changed.
func (k *Rotator) deleteExpired(ctx context.Context, log nodespec.Log) error {
	if log.MaxAge <= 0 {
		return nil
	}
	folder, _ := hostutil.SplitPath(log.Path)
	entries, err := k.host.Files.ReadDir(ctx, folder)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, err)
	}
	for _, entry := range entries {
		at, rotated := rotatedAt(log.Path, entry.Name)
		if !rotated || entry.Directory || k.clock.Since(at) <= log.MaxAge {
			continue
		}
		if err := k.host.Files.Remove(ctx, entry.Path); err != nil {
			return fmt.Errorf("delete expired log %s: %w", entry.Path, err)
		}
	}
	return nil
}
