package remote_test

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/sftp"
)

// disk is a drive behind an SFTP server: a test directory in which C: is a subdirectory.
type disk struct {
	root string
	t    testing.TB

	mu       sync.Mutex
	free     int64            // bytes; negative is unlimited
	silent   bool             // a full disk is reported as SSH_FX_FAILURE only, as by OpenSSH
	renames  bool             // a rename replaces an existing file
	failures map[string]error // server errors by request, such as "Remove /C:/k/x" or "Remove"
	hang     map[string]bool  // requests without an answer, such as "Mkdir /C:/k"
	scans    int              // number of further renames that fail because a scanner has the file open
	writes   func()           // called before each write
	junction string           // the path of a link reported as a directory, as by OpenSSH for Windows
	server   *server
}

func newDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{root: t.TempDir(), t: t, free: -1, failures: map[string]error{}, hang: map[string]bool{}}
	if err := os.Mkdir(filepath.Join(d.root, "C:"), 0o750); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *disk) sftpHandlers() sftp.Handlers {
	return sftp.Handlers{FileGet: d, FilePut: d, FileCmd: d, FileList: d}
}

// localPath returns the location of an SFTP path in the test directory.
func (d *disk) localPath(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// hasFile reports whether a path like "C:/k/x" exists.
func (d *disk) hasFile(name string) bool {
	_, err := os.Lstat(d.localPath(name))
	return err == nil
}

func (d *disk) readFile(name string) []byte {
	d.t.Helper()
	data, err := os.ReadFile(d.localPath(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

func (d *disk) writeFile(name, content string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.localPath(name)), 0o750); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.localPath(name), []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// listNames lists a directory.
func (d *disk) listNames(dir string) []string {
	d.t.Helper()
	entries, err := os.ReadDir(d.localPath(dir))
	if err != nil {
		d.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// simulatedFault returns the simulated error of a request, if any.
func (d *disk) simulatedFault(method, name string) error {
	d.mu.Lock()
	key := method + " " + name
	err, hang := cmp.Or(d.failures[key], d.failures[method]), d.hang[key]
	if method == "Rename" && d.scans > 0 {
		d.scans--
		err = sftp.ErrSSHFxPermissionDenied
	}
	d.mu.Unlock()
	if hang {
		d.server.hangRequest(key, nil)
	}
	return err
}

func (d *disk) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return os.Open(d.localPath(r.Filepath))
}

func (d *disk) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	if err := d.simulatedFault("Put", r.Filepath); err != nil {
		return nil, err
	}
	flags := os.O_WRONLY
	if r.Pflags().Creat {
		flags |= os.O_CREATE
	}
	if r.Pflags().Trunc {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(d.localPath(r.Filepath), flags, 0o600)
	return &diskFile{file, d}, err
}

type diskFile struct {
	*os.File
	disk *disk
}

var errDiskFull = errors.New("There is not enough space on the disk.") //nolint:staticcheck,revive // Windows' words

func (f *diskFile) WriteAt(p []byte, at int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	if d.writes != nil {
		d.writes()
	}
	full := d.free >= 0 && d.free < int64(len(p))
	if !full && d.free >= 0 {
		d.free -= int64(len(p))
	}
	silent := d.silent
	d.mu.Unlock()
	switch {
	case full && silent:
		return 0, sftp.ErrSSHFxFailure
	case full:
		return 0, errDiskFull
	}
	return f.File.WriteAt(p, at)
}

func (d *disk) Filecmd(r *sftp.Request) error {
	if err := d.simulatedFault(r.Method, r.Filepath); err != nil {
		return err
	}
	name := d.localPath(r.Filepath)
	switch r.Method {
	case "Mkdir":
		return os.Mkdir(name, 0o750)
	case "Rename":
		if d.hasFile(r.Target) && !d.renames {
			return sftp.ErrSSHFxFailure
		}
		return os.Rename(name, d.localPath(r.Target))
	case "Rmdir", "Remove":
		info, err := d.lstatPath(name)
		if err == nil && info.IsDir() != (r.Method == "Rmdir") {
			return sftp.ErrSSHFxFailure
		}
		return os.Remove(name)
	}
	return sftp.ErrSSHFxOpUnsupported
}

func (d *disk) StatVFS(*sftp.Request) (*sftp.StatVFS, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := uint64(1 << 40)
	if d.free >= 0 {
		free = uint64(d.free)
	}
	return &sftp.StatVFS{Bsize: 1, Frsize: 1, Bavail: free}, nil
}

func (d *disk) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if err := d.simulatedFault(r.Method, r.Filepath); err != nil {
		return nil, err
	}
	if r.Method == "Stat" {
		info, err := os.Stat(d.localPath(r.Filepath))
		return listing{info}, err
	}
	entries, err := os.ReadDir(d.localPath(r.Filepath))
	var list listing
	for _, entry := range entries {
		if info, err := d.lstatPath(filepath.Join(d.localPath(r.Filepath), entry.Name())); err == nil {
			list = append(list, info)
		}
	}
	return list, err
}

func (d *disk) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	if err := d.simulatedFault("Lstat", r.Filepath); err != nil {
		return nil, err
	}
	info, err := d.lstatPath(d.localPath(r.Filepath))
	return listing{info}, err
}

func (d *disk) lstatPath(name string) (os.FileInfo, error) {
	info, err := os.Lstat(name)
	if err != nil || d.junction == "" || name != d.localPath(d.junction) {
		return info, err
	}
	target, err := os.Stat(name)
	return junction{target, info.Name()}, err
}

// junction is a directory under the name of a link to it.
type junction struct {
	os.FileInfo
	name string
}

func (j junction) Name() string { return j.name }

type listing []os.FileInfo

func (l listing) ListAt(into []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(into, l[offset:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}
