package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pkg/sftp"
)

func (e *LeftBehindError) Error() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", name, sanitizeText(e.Files[name].Error())))
	}
	return "not deleted: " + strings.Join(parts, ", ")
}

// Remove deletes files and directory trees. Symbolic links and junctions are deleted, not followed. A missing file is
// not an error. Remove continues after a failure and then returns ReasonRemovalIncomplete with a *LeftBehindError
// that lists the remaining files.
func (c *Connection) Remove(ctx context.Context, windows ...string) error {
	r := &remover{left: map[string]error{}}
	for _, name := range windows {
		target, err := sftpPath(name)
		if err == nil && path.Dir(target) == "/" || strings.HasSuffix(target, ":/") {
			err = fmt.Errorf("%s is the root of a drive", name)
		}
		if err != nil {
			return err
		}
		r.targets = append(r.targets, target)
	}
	err := c.runFileOperation(ctx, "a response while deleting files", c.limits.FileTimeout, r.run)
	if err != nil {
		return c.callerError(ctx, err, func(err error) error {
			return c.transferError("delete "+strings.Join(windows, ", "), err)
		})
	}
	if len(r.left) == 0 {
		return nil
	}
	left := &LeftBehindError{Files: r.left}
	return &Error{Reason: ReasonRemovalIncomplete, Host: c.target.Address, Err: left, Message: sanitizeText(left.Error()),
		Next: "the operator retries; a file in use can be deleted after the end of the program that uses the file"}
}

// RemoveEmpty deletes an empty directory. A non-empty directory is left unchanged. Neither this nor a missing
// directory is an error.
func (c *Connection) RemoveEmpty(ctx context.Context, windows string) error {
	target, err := sftpPath(windows)
	if err != nil {
		return err
	}
	waiting := "a response while deleting " + windows
	err = c.runFileOperation(ctx, waiting, c.limits.FileTimeout, func(_ context.Context, s *fileSession) error {
		entries, err := s.ReadDir(target)
		if err == nil && len(entries) == 0 {
			err = s.RemoveDirectory(target)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return c.callerError(ctx, err, func(err error) error { return c.transferError("delete "+windows, err) })
}

// remover deletes directory trees over SFTP.
type remover struct {
	targets []string
	left    map[string]error // Windows paths
}

func (r *remover) run(ctx context.Context, s *fileSession) error {
	for _, target := range r.targets {
		info, err := s.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = r.removeEntry(ctx, s, target, info.IsDir(), 0)
		} else {
			err = r.recordFailure(s, target, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is the maximum nesting of directories. Windows supports longer paths only on request, and a hostile host
// may report an infinite directory tree.
const maxDepth = 64

// removeEntry deletes one entry, including the content of a directory. An error ends the removal; entries that cannot
// be deleted are only recorded.
func (r *remover) removeEntry(ctx context.Context, s *fileSession, name string, folder bool, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !folder {
		// Remove also deletes a link to a directory in the manner that Windows requires.
		return r.recordFailure(s, name, s.Remove(name))
	}
	// OpenSSH for Windows reports a junction as a directory. Deleting the directory before its content deletes a
	// junction without its target and fails for a non-empty directory. If the deletion is denied, the entry may be a
	// junction.
	err := s.RemoveDirectory(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || s.hasEnded() {
		return r.recordFailure(s, name, err)
	}
	if depth > maxDepth {
		return r.recordFailure(s, name, fmt.Errorf("directories are nested more than %d levels deep", maxDepth))
	}
	before := len(r.left)
	entries, err := s.ReadDir(name)
	if err != nil {
		return r.recordFailure(s, name, err)
	}
	for _, entry := range entries {
		if err := r.removeEntry(ctx, s, path.Join(name, entry.Name()), entry.IsDir(), depth+1); err != nil {
			return err
		}
	}
	if len(r.left) > before {
		return nil
	}
	return r.recordFailure(s, name, s.RemoveDirectory(name))
}

// recordFailure records an entry that could not be deleted. It returns an error if the session has ended.
func (r *remover) recordFailure(s *fileSession, name string, err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case s.hasEnded(), errors.Is(err, sftp.ErrSSHFxConnectionLost): // operations fail shortly before the session end is detected
		return err
	}
	r.left[windowsPath(name)] = err
	return nil
}
