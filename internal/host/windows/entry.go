//go:build windows

package windows

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// FindFirstFileW returns the stored case of a name and the kind of a link without opening the file, and therefore
// works for locked files. CreateFileW with FILE_FLAG_OPEN_REPARSE_POINT opens a link itself.
// GetFileInformationByHandle is necessary because NTFS updates the sizes in directory entries late. The other calls
// are GetSecurityInfo and Readlink of the standard library.

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openEntry opens a file, directory or link without following links. The caller must close the handle.
func openEntry(path drivePath, access, share uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return 0, err
	}
	const flags = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	return windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING, flags, 0)
}

// entry contains the facts that a directory stores about an entry.
type entry struct {
	name       string // in the stored case
	attributes uint32
	tag        uint32 // kind of reparse point, otherwise 0
	size       int64
	modified   time.Time
}

// findEntry reads an entry without opening it.
func findEntry(path drivePath) (entry, error) {
	if path.isRoot() {
		return findRoot(path)
	}
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return entry{}, err
	}
	var data windows.Win32finddata
	search, err := windows.FindFirstFile(name, &data)
	if errors.Is(err, windows.ERROR_DIRECTORY) {
		err = windows.ERROR_PATH_NOT_FOUND // a parent is a file
	}
	if err != nil {
		return entry{}, err
	}
	_ = windows.FindClose(search) // callers cannot handle this error
	e := entry{
		name: windows.UTF16ToString(data.FileName[:]), attributes: data.FileAttributes,
		size:     int64(data.FileSizeHigh)<<32 | int64(data.FileSizeLow),
		modified: time.Unix(0, data.LastWriteTime.Nanoseconds()),
	}
	if e.attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
		e.tag = data.Reserved0
	}
	return e, nil
}

// findRoot describes a drive, which is in no directory.
func findRoot(path drivePath) (entry, error) {
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return entry{}, err
	}
	attributes, err := windows.GetFileAttributes(name)
	return entry{name: path.String(), attributes: attributes}, err
}

// isLink reports whether the entry is a symbolic link or a junction.
func (e entry) isLink() bool {
	return e.tag == windows.IO_REPARSE_TAG_SYMLINK || e.tag == windows.IO_REPARSE_TAG_MOUNT_POINT
}

// hasDirectoryAttribute reports whether Windows treats the entry as a directory: a directory, or a link created for a
// directory.
func (e entry) hasDirectoryAttribute() bool {
	return e.attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0
}

// isDirectory reports whether the entry is a directory and not a link.
func (e entry) isDirectory() bool { return e.hasDirectoryAttribute() && !e.isLink() }

// statPath implements host.Files.Stat.
func statPath(path drivePath) (host.FileInfo, error) {
	found, err := findEntry(path)
	if err != nil {
		return host.FileInfo{}, err
	}
	info := host.FileInfo{Path: path.String(), Name: found.name, Directory: found.isDirectory(), Modified: found.modified,
		Access: host.AccessInherited}
	if !path.isRoot() {
		info.Path = path.siblingPath(found.name).String()
	}
	if !found.hasDirectoryAttribute() && !found.isLink() {
		info.Size = found.size
	}
	if found.isLink() {
		if info.LinkTarget, err = os.Readlink(path.String()); err != nil {
			return host.FileInfo{}, err
		}
	}
	return info, addHandleInfo(path, &info)
}

// addHandleInfo adds the facts that need a handle. If access is denied or the file is locked, the facts from the
// directory remain.
func addHandleInfo(path drivePath, info *host.FileInfo) error {
	handle, err := openEntry(path, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL, shareAll)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil
	}
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // read only
	var data windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &data); err != nil {
		return err
	}
	info.Modified = time.Unix(0, data.LastWriteTime.Nanoseconds())
	if !info.Directory && info.LinkTarget == "" {
		info.Size = int64(data.FileSizeHigh)<<32 | int64(data.FileSizeLow)
	}
	info.Access, info.Foreign, err = readAccess(handle)
	return err
}

// wrapFileError wraps the error of a file operation with the operation, the path and the host error.
func wrapFileError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var known *fs.PathError
	if errors.As(err, &known) {
		path, err = known.Path, known.Err // from the standard library, possibly for a file in a subdirectory
	}
	var code syscall.Errno
	var classified classifiedError
	if errors.As(err, &code) && !errors.As(err, &classified) {
		if means := fileErrorMeaning(uint32(code)); means != nil {
			err = classifiedError{error: code, hostError: means}
		}
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
