//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// A file is written under a draft's name in the same folder, flushed (FlushFileBuffers) and moved into place by
// MoveFileExW with MOVEFILE_REPLACE_EXISTING and MOVEFILE_WRITE_THROUGH, which on NTFS is one step in the journal.
// ReplaceFileW is no choice: it keeps the old file's permissions and can fail in the middle.

// draftSuffix is the end of a draft's name. A process that is killed on the way leaves its draft behind; the next write
// of the same file takes the name over.
const draftSuffix = ".wmco-tmp"

// write is host.Files.Write.
func write(ctx context.Context, path drivePath, content io.Reader, options host.WriteOptions) error {
	if err := writable(path, options); err != nil {
		return err
	}
	draft := path.sibling(path.name() + draftSuffix)
	if options.Exclusive {
		// Several processes may make the file at the same time; each needs a draft of its own.
		draft = path.sibling(path.name() + "." + strconv.Itoa(os.Getpid()) + draftSuffix)
	}
	if err := fill(ctx, draft, content, options.Access); err != nil {
		return err
	}
	flags := uint32(windows.MOVEFILE_REPLACE_EXISTING)
	if options.Exclusive {
		flags = 0
	}
	err := move(ctx, draft, path, flags)
	if err != nil {
		_ = removeEntry(draft) // best effort: the write has failed already
	}
	return err
}

// writable tells early what cannot work, before the content is read.
func writable(path drivePath, options host.WriteOptions) error {
	if path.root() {
		return windows.ERROR_ACCESS_DENIED
	}
	found, err := findEntry(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // whether the folder is there, the making of the draft tells
	case err != nil:
		return err
	case options.Exclusive:
		return windows.ERROR_ALREADY_EXISTS
	case found.folder():
		return windows.ERROR_ACCESS_DENIED
	}
	return nil
}

// fill makes the draft with its content on the disk, or not at all.
func fill(ctx context.Context, draft drivePath, content io.Reader, access host.Access) error {
	file, err := makeDraft(draft, access)
	if err != nil {
		return err
	}
	err = transfer(ctx, file, content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = removeEntry(draft) // best effort: the write has failed already
	}
	return err
}

// makeDraft makes an empty draft that nobody else may open.
func makeDraft(draft drivePath, access host.Access) (*os.File, error) {
	security, err := securityOf(access, false)
	if err != nil {
		return nil, err
	}
	if err := checkName(draft.name()); err != nil {
		return nil, err
	}
	if err := removeEntry(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// CREATE_NEW follows no link, and security attributes count for new files only.
	return openFile(draft, windows.GENERIC_WRITE, 0, windows.CREATE_NEW, security)
}

// transfer copies until the end or until ctx is done.
func transfer(ctx context.Context, file *os.File, content io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := content.Read(buffer)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if _, err := file.Write(buffer[:n]); err != nil {
			return err
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("read the content to write: %w", readErr)
		}
	}
}
