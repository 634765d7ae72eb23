package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pkg/sftp"
)

// uploadError returns the error for a failed upload.
func (u *upload) uploadError(ctx context.Context, windows string, err error) error {
	c := u.connection
	if u.source.err != nil {
		return &Error{Reason: ReasonTransferFailed, Host: c.target.Address, Err: err,
			Message: fmt.Sprintf("the content of %s cannot be read (%v)", windows, u.source.err)}
	}
	if isDiskFull(err) || u.writing && isUnexplained(err) && c.isFull(ctx, u) {
		return &Error{Reason: ReasonDiskFull, Host: c.target.Address, Err: err,
			Message: fmt.Sprintf("drive %s has no space for %s (%d MiB)", windows[:2], windows, u.source.size>>20+1),
			Next:    "free space on that drive of the host"}
	}
	return c.transferError("send "+windows, err)
}

// sftpNoSpace is SSH_FX_NO_SPACE_ON_FILESYSTEM of later SFTP drafts.
const sftpNoSpace = 14

// isDiskFull reports whether the server explicitly reported a full disk.
func isDiskFull(err error) bool {
	var status *sftp.StatusError
	if !errors.As(err, &status) {
		return false
	}
	text := strings.ToLower(status.Error())
	return status.Code == sftpNoSpace || strings.Contains(text, "not enough space") ||
		strings.Contains(text, "no space left")
}

// isUnexplained reports whether the error is SSH_FX_FAILURE, the only error of OpenSSH for a full disk.
func isUnexplained(err error) bool {
	var status *sftp.StatusError
	return errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxFailure
}

// spareBytes is the minimum free space of a volume, in addition to the file size, to not count as full.
const spareBytes = 1 << 20

// isFull queries the free space of the volume. The partial file has been removed by then, so its full size counts.
func (c *Connection) isFull(ctx context.Context, u *upload) bool {
	full := false
	err := c.runFileOperation(ctx, "the free space of the volume", c.limits.FileTimeout, func(_ context.Context, s *fileSession) error {
		if _, ok := s.HasExtension("statvfs@openssh.com"); !ok {
			return nil
		}
		volume, err := s.StatVFS(path.Dir(u.target))
		if err == nil {
			full = volume.Bavail*volume.Frsize < uint64(u.source.size)+spareBytes //nolint:gosec // G115: no size is negative //nolint:gosec // a size is not negative
		}
		return err
	})
	return err == nil && full
}

// transferError returns the error for a failed file operation on a working connection.
func (c *Connection) transferError(action string, err error) error {
	e := &Error{Reason: ReasonTransferFailed, Host: c.target.Address, Err: err,
		Message: fmt.Sprintf("could not %s (%s)", action, sanitizeText(err.Error())), Next: "the operator retries"}
	var own *Error
	var timeout *TimeoutError
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &timeout) && timeout.Overall:
		e.Message = fmt.Sprintf("could not %s: the host responds too slowly (%v)", action, timeout)
		e.Next = "the operator retries; check the load, the disk and the network of the host"
	case errors.As(err, &timeout):
		e.Message = fmt.Sprintf("could not %s: the host stopped responding (%v)", action, timeout)
	case errors.Is(err, fs.ErrPermission):
		e.Message = fmt.Sprintf("could not %s: permission denied for user %s", action, c.target.User)
		e.Next = fmt.Sprintf("make %s a member of the host's group Administrators", c.target.User)
	}
	return e
}
