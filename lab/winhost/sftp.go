package winhost

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// limitExtensions prevents the SFTP server from offering extensions that a host may not have, posix-rename above all.
// OpenSSH for Windows reports the free space of a volume. The library has one setting for all servers of the process.
var limitExtensions = sync.OnceValue(func() error { return sftp.SetSFTPExtensions("statvfs@openssh.com") })

// serveFiles serves the drive by SFTP until the client closes the session. Non-administrators cannot write to the
// directories of administrators.
func serveFiles(channel io.ReadWriteCloser, host *Host, user string) error {
	files := &files{host: host, drive: host.machine.Drive(), home: "/C:/Users/" + user,
		administrator: host.isAdministrator(user), open: map[string]*upload{}, scanned: map[string]time.Time{}}
	server := sftp.NewRequestServer(channel, sftp.Handlers{FileGet: files, FilePut: files,
		FileCmd: files, FileList: files},
		sftp.WithStartDirectory(files.home))
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// files is one SFTP session.
type files struct {
	host          *Host
	drive         *fake.Drive
	home          string
	administrator bool

	mu      sync.Mutex
	open    map[string]*upload   // by path in lower case
	scanned map[string]time.Time // start time of the scan of a file, by path in lower case
}

// isInScan reports whether a virus scanner has the file open, without sharing for deletion.
func (f *files) isInScan(path string) bool {
	fault := f.host.faults.findActive(RenameRefused)
	if fault == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	start, exists := f.scanned[strings.ToLower(path)]
	return exists && f.host.clock.Since(start) < fault.parameters.Duration
}

// statusError returns an error in the form that the client receives. OpenSSH sends a number and the standard text,
// without the error of Windows: a full disk and an existing file are both a failure.
func statusError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, fs.ErrNotExist):
		return sftp.ErrSSHFxNoSuchFile
	case errors.Is(err, host.ErrInUse), errors.Is(err, fs.ErrPermission):
		return sftp.ErrSSHFxPermissionDenied
	}
	return sftp.ErrSSHFxFailure
}

// administratorsDirectory is the directory of sshd's configuration.
const administratorsDirectory = `c:\programdata\ssh`

// canChange reports whether the user may change the file at a path.
func (f *files) canChange(path string) bool {
	path = strings.ToLower(path)
	return f.administrator || path != administratorsDirectory && !strings.HasPrefix(path, administratorsDirectory+`\`)
}

// windowsPath returns the path on the drive: C:\k for /C:/k. The start directory is stripped if it precedes a drive
// only because the client left out the slash before the drive.
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

// sftpPath returns the path in the form of SFTP clients.
func sftpPath(path string) string { return "/" + strings.ReplaceAll(path, `\`, "/") }

// upload is a file that is open for writing.
type upload struct {
	*fake.FileWriter
	files *files
	key   string
	// appends is true if all data is written at the end, regardless of the client's offset.
	appends bool
}

// WriteAt implements io.WriterAt.
func (u *upload) WriteAt(b []byte, offset int64) (int, error) {
	if u.appends {
		offset = u.Size()
	}
	n, err := u.FileWriter.WriteAt(b, offset)
	return n, statusError(err)
}

// Close implements io.Closer. It is also called when the connection is lost; received data is kept.
func (u *upload) Close() error {
	u.files.mu.Lock()
	delete(u.files.open, u.key)
	u.files.scanned[u.key] = u.files.host.clock.Now()
	u.files.mu.Unlock()
	return statusError(u.FileWriter.Close())
}

// openUpload returns the open file of this session at the path, if there is one.
func (f *files) openUpload(path string) *upload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[strings.ToLower(path)]
}

// Fileread implements sftp.FileReader.
func (f *files) Fileread(request *sftp.Request) (io.ReaderAt, error) {
	reader, err := f.drive.Open(windowsPath(request.Filepath))
	if err != nil {
		return nil, statusError(err)
	}
	return reader, nil
}

// Filewrite implements sftp.FileWriter.
func (f *files) Filewrite(request *sftp.Request) (io.WriterAt, error) {
	flags, path := request.Pflags(), windowsPath(request.Filepath)
	if !f.canChange(path) {
		return nil, sftp.ErrSSHFxPermissionDenied
	}
	writer, err := f.drive.OpenWriter(path, fake.OpenWriterOptions{
		Exclusive: flags.Creat && flags.Excl, MustExist: !flags.Creat, Keep: !flags.Trunc,
	})
	if err != nil {
		return nil, statusError(err)
	}
	u := &upload{FileWriter: writer, files: f, key: strings.ToLower(path), appends: flags.Append}
	f.mu.Lock()
	f.open[u.key] = u
	f.mu.Unlock()
	return u, nil
}

// Filecmd implements sftp.FileCmder.
func (f *files) Filecmd(request *sftp.Request) error {
	path := windowsPath(request.Filepath)
	if !f.canChange(path) {
		return sftp.ErrSSHFxPermissionDenied
	}
	switch request.Method {
	case "Mkdir":
		return statusError(f.drive.Mkdir(path))
	case "Remove":
		return statusError(f.removePath(path, false))
	case "Rmdir":
		return statusError(f.removePath(path, true))
	case "Rename":
		return statusError(f.renamePath(path, windowsPath(request.Target)))
	case "Symlink":
		return statusError(f.createSymlink(request.Filepath, windowsPath(request.Target)))
	case "Setstat":
		return statusError(f.setAttributes(request, path))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// clusterBytes is the cluster size of NTFS.
const clusterBytes = 4 << 10

// StatVFS implements sftp.StatVFSFileCmder. It returns the size and the free space of the volume.
func (f *files) StatVFS(request *sftp.Request) (*sftp.StatVFS, error) {
	if _, err := f.drive.Stat(windowsPath(request.Filepath)); err != nil {
		return nil, statusError(err)
	}
	size, free := f.drive.Space()
	return &sftp.StatVFS{
		Bsize: clusterBytes, Frsize: clusterBytes, Blocks: uint64(size) / clusterBytes, // no size is negative
		Bfree: uint64(free) / clusterBytes, Bavail: uint64(free) / clusterBytes, Namemax: 259, // as above
	}, nil
}

// PosixRename refuses the extension that was not offered.
func (f *files) PosixRename(*sftp.Request) error { return sftp.ErrSSHFxOpUnsupported }

func (f *files) removePath(path string, directory bool) error {
	info, err := f.drive.Stat(path)
	if err != nil {
		return err
	}
	if f.sshFileInfo(info).Directory != directory || f.isInScan(path) {
		return fs.ErrPermission
	}
	return f.drive.Remove(path)
}

// renamePath refuses to replace an existing file, like the plain rename of SFTP.
func (f *files) renamePath(from, to string) error {
	if _, err := f.drive.Stat(from); err != nil {
		return err
	}
	if _, err := f.drive.Stat(to); err == nil {
		return fs.ErrExist
	}
	if f.isInScan(from) {
		return fs.ErrPermission // the server first creates a link, and removes it if the old name cannot be removed
	}
	return f.drive.Rename(from, to)
}

func (f *files) createSymlink(target, link string) error {
	if _, err := f.drive.Stat(link); err == nil {
		return fs.ErrExist
	}
	if strings.Contains(target, ":") {
		target = windowsPath(target)
	}
	return f.drive.Symlink(strings.ReplaceAll(target, "/", `\`), link)
}

// setAttributes sets the size. Times and permissions are accepted without effect, like most permissions on Windows; a
// change of the owner is refused.
func (f *files) setAttributes(request *sftp.Request, path string) error {
	flags := request.AttrFlags()
	if flags.UidGid {
		return os.ErrInvalid
	}
	if _, err := f.drive.Stat(path); err != nil || !flags.Size {
		return err
	}
	size := int64(request.Attributes().Size)
	if open := f.openUpload(path); open != nil {
		return open.Truncate(size)
	}
	writer, err := f.drive.OpenWriter(path, fake.OpenWriterOptions{MustExist: true, Keep: true})
	if err != nil {
		return err
	}
	return errors.Join(writer.Truncate(size), writer.Close())
}
