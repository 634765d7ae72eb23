//go:build windows

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/sys/windows"
)

// files is one SFTP session.
type files struct{ home string }

// statusError returns an error as the client sees it: OpenSSH sends a number and a standard text, without details
// from Windows.
func statusError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, fs.ErrNotExist):
		return sftp.ErrSSHFxNoSuchFile
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION), errors.Is(err, fs.ErrPermission):
		return sftp.ErrSSHFxPermissionDenied
	}
	return sftp.ErrSSHFxFailure
}

// windowsPath returns C:\k for /C:/k, also if the client prepended its start directory to the drive.
func windowsPath(name string) string {
	name = path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))
	for i := len(name) - 3; i >= 0; i-- {
		if name[i] == '/' && name[i+2] == ':' && (i+3 == len(name) || name[i+3] == '/') {
			name = name[i+1:]
			break
		}
	}
	if len(name) == 2 && name[1] == ':' {
		name += "/"
	}
	return strings.ReplaceAll(name, "/", `\`)
}

func sftpPath(path string) string { return "/" + strings.ReplaceAll(path, `\`, "/") }

// Fileread implements sftp.FileReader.
func (f *files) Fileread(request *sftp.Request) (io.ReaderAt, error) {
	file, err := os.Open(windowsPath(request.Filepath))
	if err != nil {
		return nil, statusError(err)
	}
	return file, nil
}

// Filewrite implements sftp.FileWriter.
func (f *files) Filewrite(request *sftp.Request) (io.WriterAt, error) {
	flags := request.Pflags()
	if flags.Append {
		return nil, sftp.ErrSSHFxOpUnsupported
	}
	mode := os.O_WRONLY
	if flags.Read {
		mode = os.O_RDWR
	}
	for _, flag := range []struct {
		set  bool
		mode int
	}{{flags.Creat, os.O_CREATE}, {flags.Trunc, os.O_TRUNC}, {flags.Creat && flags.Excl, os.O_EXCL}} {
		if flag.set {
			mode |= flag.mode
		}
	}
	file, err := os.OpenFile(windowsPath(request.Filepath), mode, 0o666)
	if err != nil {
		return nil, statusError(err)
	}
	return upload{file}, nil
}

// upload is a file that is open for writing.
type upload struct{ *os.File }

// WriteAt implements io.WriterAt.
func (u upload) WriteAt(b []byte, offset int64) (int, error) {
	n, err := u.File.WriteAt(b, offset)
	return n, statusError(err)
}

// Filecmd implements sftp.FileCmder.
func (f *files) Filecmd(request *sftp.Request) error {
	name := windowsPath(request.Filepath)
	switch request.Method {
	case "Mkdir":
		return statusError(os.Mkdir(name, 0o777))
	case "Remove":
		return statusError(removeEntry(name, false))
	case "Rmdir":
		return statusError(removeEntry(name, true))
	case "Rename":
		return statusError(renameFile(name, windowsPath(request.Target)))
	case "Setstat":
		return statusError(setAttributes(request, name))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename refuses the extension, which is not advertised.
func (f *files) PosixRename(*sftp.Request) error { return sftp.ErrSSHFxOpUnsupported }

func removeEntry(name string, directory bool) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if sshFileInfo(info).IsDir() != directory {
		return fs.ErrPermission
	}
	return os.Remove(name)
}

// renameFile never replaces a file, like the plain rename of OpenSSH: MoveFile without MOVEFILE_REPLACE_EXISTING.
func renameFile(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(source, target, 0)
}

// setAttributes sets the size. Times and permissions are accepted without effect, as permissions mostly are on
// Windows.
func setAttributes(request *sftp.Request, name string) error {
	flags := request.AttrFlags()
	if flags.UidGid {
		return os.ErrInvalid
	}
	if _, err := os.Stat(name); err != nil || !flags.Size {
		return err
	}
	return os.Truncate(name, int64(request.Attributes().Size)) // Windows refuses a size that does not fit
}
