package winhost

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Filelist implements sftp.FileLister. It lists directories, and describes files after following links.
func (f *files) Filelist(request *sftp.Request) (sftp.ListerAt, error) {
	path := windowsPath(request.Filepath)
	if path == `\` { // above the drives
		if request.Method == "List" {
			return entries{entry{host.FileInfo{Name: "C:", Directory: true}}}, nil
		}
		return entries{entry{host.FileInfo{Name: "/", Directory: true}}}, nil
	}
	if request.Method != "List" {
		target, err := f.drive.RealName(path)
		if err != nil {
			return nil, statusError(err)
		}
		return f.describeFile(target)
	}
	infos, err := f.drive.ReadDir(path)
	if err != nil {
		return nil, statusError(err)
	}
	list := make(entries, len(infos))
	for i, info := range infos {
		list[i] = entry{f.sshFileInfo(info)}
	}
	return list, nil
}

// Lstat implements sftp.LstatFileLister.
func (f *files) Lstat(request *sftp.Request) (sftp.ListerAt, error) {
	return f.describeFile(windowsPath(request.Filepath))
}

// describeFile returns the description of one file. For an upload in this session, the size is the received size.
func (f *files) describeFile(path string) (sftp.ListerAt, error) {
	info, err := f.drive.Stat(path)
	if err != nil {
		return nil, statusError(err)
	}
	if open := f.openUpload(path); open != nil {
		info.Size = open.Size()
	}
	return entries{entry{f.sshFileInfo(info)}}, nil
}

// sshFileInfo returns an entry in the form of OpenSSH for Windows: a junction is a directory, only a symbolic link is a
// link.
func (f *files) sshFileInfo(info host.FileInfo) host.FileInfo {
	if info.LinkTarget != "" && f.drive.IsJunction(info.Path) {
		info.Directory, info.LinkTarget = true, ""
	}
	return info
}

// RealPath implements sftp.RealPathFileLister. As on Windows, links are not followed.
func (f *files) RealPath(name string) (string, error) {
	if name = strings.ReplaceAll(name, `\`, "/"); !path.IsAbs(name) {
		name = path.Join(f.home, name)
	}
	if name = windowsPath(name); name == `\` {
		return "/", nil
	}
	return sftpPath(name), nil
}

// Readlink implements sftp.ReadlinkFileLister.
func (f *files) Readlink(name string) (string, error) {
	info, err := f.drive.Stat(windowsPath(name))
	switch {
	case err != nil:
		return "", statusError(err)
	case f.sshFileInfo(info).LinkTarget == "":
		return "", sftp.ErrSSHFxFailure
	case strings.Contains(info.LinkTarget, ":"):
		return sftpPath(info.LinkTarget), nil
	}
	return strings.ReplaceAll(info.LinkTarget, `\`, "/"), nil
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

// entry is a file of the drive as an fs.FileInfo.
type entry struct{ info host.FileInfo }

func (e entry) Name() string       { return e.info.Name }
func (e entry) Size() int64        { return e.info.Size }
func (e entry) ModTime() time.Time { return e.info.Modified }
func (e entry) IsDir() bool        { return e.info.Directory }
func (e entry) Sys() any           { return nil }

func (e entry) Mode() fs.FileMode {
	switch {
	case e.info.LinkTarget != "":
		return fs.ModeSymlink | 0o777
	case e.info.Directory:
		return fs.ModeDir | 0o777
	}
	return 0o666
}
