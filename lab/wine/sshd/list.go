//go:build windows

package main

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sys/windows"
)

// Filelist implements sftp.FileLister: it lists directories, and describes files, following links.
func (f *files) Filelist(request *sftp.Request) (sftp.ListerAt, error) {
	name := windowsPath(request.Filepath)
	if name == `\` { // above the drives
		if request.Method == "List" {
			return entries{directoryInfo("C:")}, nil
		}
		return entries{directoryInfo("/")}, nil
	}
	if request.Method != "List" {
		info, err := os.Stat(name)
		if err != nil {
			return nil, statusError(err)
		}
		return entries{info}, nil
	}
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, statusError(err)
	}
	var all entries
	for _, entry := range list {
		if info, err := entry.Info(); err == nil { // otherwise the entry was just deleted
			all = append(all, sshFileInfo(info))
		}
	}
	return all, nil
}

// Lstat implements sftp.LstatFileLister.
func (f *files) Lstat(request *sftp.Request) (sftp.ListerAt, error) {
	if name := windowsPath(request.Filepath); name != `\` {
		info, err := os.Lstat(name)
		if err != nil {
			return nil, statusError(err)
		}
		return entries{sshFileInfo(info)}, nil
	}
	return entries{directoryInfo("/")}, nil
}

// sshFileInfo returns an entry as OpenSSH for Windows reports it: a junction, which Go calls irregular, is a
// directory.
func sshFileInfo(info fs.FileInfo) fs.FileInfo {
	if info.Mode()&fs.ModeIrregular != 0 {
		return directoryInfo(info.Name())
	}
	return info
}

// RealPath implements sftp.RealPathFileLister. As on Windows, links are not followed.
func (f *files) RealPath(name string) (string, error) { //nolint:unparam // the interface has an error
	if name = strings.ReplaceAll(name, `\`, "/"); !path.IsAbs(name) {
		name = path.Join(f.home, name)
	}
	if name = windowsPath(name); name == `\` {
		return "/", nil
	}
	return sftpPath(name), nil
}

// StatVFS implements sftp.StatVFSFileCmder: the free space of the volume.
func (f *files) StatVFS(request *sftp.Request) (*sftp.StatVFS, error) {
	name, err := windows.UTF16PtrFromString(windowsPath(request.Filepath))
	if err != nil {
		return nil, statusError(err)
	}
	var available, size, free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &size, &free); err != nil {
		return nil, statusError(err)
	}
	const cluster = 4 << 10 // NTFS
	return &sftp.StatVFS{Bsize: cluster, Frsize: cluster, Blocks: size / cluster, Bfree: free / cluster,
		Bavail: available / cluster, Namemax: 259}, nil
}

// entries is an sftp.ListerAt.
type entries []os.FileInfo

// ListAt implements sftp.ListerAt.
func (e entries) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(e)) {
		return 0, io.EOF
	}
	n := copy(to, e[offset:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// directoryInfo describes a directory with a name only.
type directoryInfo string

func (f directoryInfo) Name() string     { return string(f) }
func (directoryInfo) Size() int64        { return 0 }
func (directoryInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o777 }
func (directoryInfo) ModTime() time.Time { return time.Time{} }
func (directoryInfo) IsDir() bool        { return true }
func (directoryInfo) Sys() any           { return nil }
