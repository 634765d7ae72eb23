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

// Win32 calls here: FindFirstFileW for the stored case of a name and the kind of a link (nothing is opened, so it works
// on files that are locked); CreateFileW with FILE_FLAG_OPEN_REPARSE_POINT, which opens a link itself;
// GetFileInformationByHandle, because NTFS updates the sizes in folder entries late; GetSecurityInfo; and the standard
// library's Readlink.

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openEntry opens a file, folder or link, links not followed. The caller closes the handle.
func openEntry(path drivePath, access, share uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path.extended())
	if err != nil {
		return 0, err
	}
	const flags = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	return windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING, flags, 0)
}

// entry is what a folder knows of one of its entries.
type entry struct {
	name       string // in the stored case
	attributes uint32
	tag        uint32 // kind of reparse point; 0 for others
	size       int64
	modified   time.Time
}

// findEntry reads an entry without opening it.
func findEntry(path drivePath) (entry, error) {
	if path.root() {
		return findRoot(path)
	}
	name, err := windows.UTF16PtrFromString(path.extended())
	if err != nil {
		return entry{}, err
	}
	var data windows.Win32finddata
	search, err := windows.FindFirstFile(name, &data)
	if errors.Is(err, windows.ERROR_DIRECTORY) {
		err = windows.ERROR_PATH_NOT_FOUND // something above is a file
	}
	if err != nil {
		return entry{}, err
	}
	_ = windows.FindClose(search) // nothing that a caller could do
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

// findRoot describes a drive, which is in no folder.
func findRoot(path drivePath) (entry, error) {
	name, err := windows.UTF16PtrFromString(path.extended())
	if err != nil {
		return entry{}, err
	}
	attributes, err := windows.GetFileAttributes(name)
	return entry{name: path.String(), attributes: attributes}, err
}

// link reports whether the entry leads elsewhere: a symbolic link, or a junction.
func (e entry) link() bool {
	return e.tag == windows.IO_REPARSE_TAG_SYMLINK || e.tag == windows.IO_REPARSE_TAG_MOUNT_POINT
}

// folderKind reports whether Windows treats the entry as a folder: a folder, or a link that was made for one.
func (e entry) folderKind() bool { return e.attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 }

// folder reports whether the entry is a true folder.
func (e entry) folder() bool { return e.folderKind() && !e.link() }

// describe is host.Files.Stat.
func describe(path drivePath) (host.FileInfo, error) {
	found, err := findEntry(path)
	if err != nil {
		return host.FileInfo{}, err
	}
	info := host.FileInfo{Path: path.String(), Name: found.name, Directory: found.folder(), Modified: found.modified,
		Access: host.AccessInherited}
	if !path.root() {
		info.Path = path.sibling(found.name).String()
	}
	if !found.folderKind() && !found.link() {
		info.Size = found.size
	}
	if found.link() {
		if info.LinkTarget, err = os.Readlink(path.String()); err != nil {
			return host.FileInfo{}, err
		}
	}
	return info, complete(path, &info)
}

// complete adds facts that need a handle. Without access, or if the file is locked, the facts from the folder remain.
func complete(path drivePath, info *host.FileInfo) error {
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

// fault wraps the error of a file operation with the operation, the path and what it means.
func fault(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var known *fs.PathError
	if errors.As(err, &known) {
		path, err = known.Path, known.Err // of the library, which may name a file further down
	}
	var code syscall.Errno
	var classified meaningful
	if errors.As(err, &code) && !errors.As(err, &classified) {
		if means := fileErrorMeaning(uint32(code)); means != nil {
			err = meaningful{error: code, means: means}
		}
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
