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
		parts = append(parts, fmt.Sprintf("%s (%s)", name, sanitize(e.Files[name].Error())))
	}
	return "left behind: " + strings.Join(parts, ", ")
}

// Remove deletes files and whole folders. Symbolic links and junctions are deleted, not followed. A missing file is no error. It
// continues after a failure, and then returns ReasonRemovalIncomplete with a *LeftBehindError that lists the rest.
func (c *Connection) Remove(ctx context.Context, windows ...string) error {
	r := &remover{left: map[string]error{}}
	for _, name := range windows {
		target, err := sftpPath(name)
		if err == nil && path.Dir(target) == "/" || strings.HasSuffix(target, ":/") {
			err = fmt.Errorf("%s is a whole drive", name)
		}
		if err != nil {
			return err
		}
		r.targets = append(r.targets, target)
	}
	err := c.operate(ctx, "an answer while files are deleted", c.limits.File, r.run)
	if err != nil {
		return c.verdict(ctx, err, func(err error) error {
			return c.transferFailed("delete "+strings.Join(windows, ", "), err)
		})
	}
	if len(r.left) == 0 {
		return nil
	}
	left := &LeftBehindError{Files: r.left}
	return &Error{Reason: ReasonRemovalIncomplete, Host: c.target.Address, Err: left, Message: sanitize(left.Error()),
		Next: "the operator retries; a file in use can be deleted once its program has ended"}
}

// RemoveEmpty deletes a folder with nothing in it. One that holds something stays; that, and its absence, is no error.
func (c *Connection) RemoveEmpty(ctx context.Context, windows string) error {
	target, err := sftpPath(windows)
	if err != nil {
		return err
	}
	waiting := "an answer while " + windows + " is deleted"
	err = c.operate(ctx, waiting, c.limits.File, func(_ context.Context, s *fileSession) error {
		entries, err := s.ReadDir(target)
		if err == nil && len(entries) == 0 {
			err = s.RemoveDirectory(target)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return c.verdict(ctx, err, func(err error) error { return c.transferFailed("delete "+windows, err) })
}

// remover deletes trees over SFTP.
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
			err = r.remove(ctx, s, target, info.IsDir(), 0)
		} else {
			err = r.note(s, target, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deepest is how many folders may lie in each other. Windows has longer paths only for who asks for them, and a host
// may tell of folders without an end.
const deepest = 64

// remove deletes one entry; a folder with all in it. Its error ends the whole removal; what merely cannot be deleted is
// noted.
func (r *remover) remove(ctx context.Context, s *fileSession, name string, folder bool, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !folder {
		// Remove also deletes a link to a folder, as which Windows wants it deleted.
		return r.note(s, name, s.Remove(name))
	}
	// OpenSSH for Windows shows a junction as a folder. To delete a folder first, whatever is in it, deletes a junction
	// without its target and fails for a folder that is not empty. If that is denied, the entry may be a junction.
	err := s.RemoveDirectory(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || s.ended() {
		return r.note(s, name, err)
	}
	if depth > deepest {
		return r.note(s, name, fmt.Errorf("folders are nested more than %d deep", deepest))
	}
	before := len(r.left)
	entries, err := s.ReadDir(name)
	if err != nil {
		return r.note(s, name, err)
	}
	for _, entry := range entries {
		if err := r.remove(ctx, s, path.Join(name, entry.Name()), entry.IsDir(), depth+1); err != nil {
			return err
		}
	}
	if len(r.left) > before {
		return nil
	}
	return r.note(s, name, s.RemoveDirectory(name))
}

// note remembers what could not be deleted. The end of the session is an error.
func (r *remover) note(s *fileSession, name string, err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case s.ended(), errors.Is(err, sftp.ErrSSHFxConnectionLost): // operations fail a moment before the session is known to have ended
		return err
	}
	r.left[windowsPath(name)] = err
	return nil
}
