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

// A file is written to a draft in the same directory, flushed (FlushFileBuffers), and moved to its final name by
// MoveFileExW with MOVEFILE_REPLACE_EXISTING and MOVEFILE_WRITE_THROUGH. On NTFS, the move is one step in the
// journal. ReplaceFileW is unsuitable: it keeps the permissions of the old file and can fail halfway.

// draftSuffix is the suffix of a draft's name. A killed process leaves its draft behind, and the next write of the
// same file replaces the draft.
const draftSuffix = ".wmco-tmp"

// write implements host.Files.Write.
func write(ctx context.Context, path drivePath, content io.Reader, options host.WriteOptions) error {
	if err := checkWritable(path, options); err != nil {
		return err
	}
	draft := path.siblingPath(path.baseName() + draftSuffix)
	if options.Exclusive {
		// Several processes may create the file concurrently, so each process needs a separate draft.
		draft = path.siblingPath(path.baseName() + "." + strconv.Itoa(os.Getpid()) + draftSuffix)
	}
	if err := fillDraft(ctx, draft, content, options.Access); err != nil {
		return err
	}
	flags := uint32(windows.MOVEFILE_REPLACE_EXISTING)
	if options.Exclusive {
		flags = 0
	}
	err := moveEntry(ctx, draft, path, flags)
	if err != nil {
		_ = removeEntry(draft) // best effort: the write has already failed
	}
	return err
}

// checkWritable detects impossible writes before the content is read.
func checkWritable(path drivePath, options host.WriteOptions) error {
	if path.isRoot() {
		return windows.ERROR_ACCESS_DENIED
	}
	found, err := findEntry(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the creation of the draft detects a missing directory
	case err != nil:
		return err
	case options.Exclusive:
		return windows.ERROR_ALREADY_EXISTS
	case found.isDirectory():
		return windows.ERROR_ACCESS_DENIED
	}
	return nil
}

// fillDraft creates the draft with its content on disk, or no draft.
func fillDraft(ctx context.Context, draft drivePath, content io.Reader, access host.Access) error {
	file, err := makeDraft(draft, access)
	if err != nil {
		return err
	}
	err = copyContent(ctx, file, content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = removeEntry(draft) // best effort: the write has already failed
	}
	return err
}

// makeDraft creates an empty draft that no other process can open.
func makeDraft(draft drivePath, access host.Access) (*os.File, error) {
	security, err := securityOf(access, false)
	if err != nil {
		return nil, err
	}
	if err := checkName(draft.baseName()); err != nil {
		return nil, err
	}
	if err := removeEntry(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// CREATE_NEW follows no link, and security attributes apply only to new files.
	return openFile(draft, windows.GENERIC_WRITE, 0, windows.CREATE_NEW, security)
}

// copyContent copies the content until its end or until ctx is done.
func copyContent(ctx context.Context, file *os.File, content io.Reader) error {
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
