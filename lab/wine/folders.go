package wine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// Below Base.Dir.
const (
	hostsDir = "hosts"
	binDir   = "bin"
	lockName = "lock"
)

// lock waits for a lock file, which is made if it is not there. The lock ends when the file is closed, or with the
// process.
func lock(path string) (*os.File, error) { return flock(path, unix.LOCK_EX) }

func flock(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// newFolder makes the folder of a host below dir, and locks it: the lock says that its maker lives.
func newFolder(dir, name string) (folder string, held *os.File, err error) {
	all, err := lock(filepath.Join(dir, lockName)) // else a sweep might find the folder before it is locked
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	if folder, err = os.MkdirTemp(dir, strings.ToLower(name)+"-"); err != nil {
		return "", nil, err
	}
	held, err = lock(filepath.Join(folder, wire.LockFile))
	return folder, held, err
}

// sweep removes the folders of hosts whose makers were killed.
func sweep(dir string) error {
	all, err := lock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer all.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.IsDir() {
			errs = append(errs, sweepFolder(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

func sweepFolder(folder string) error {
	held, err := flock(filepath.Join(folder, wire.LockFile), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its maker lives
	}
	if err != nil {
		return err
	}
	defer held.Close()
	// A host that is ending at this moment still has files; the next time it has not.
	if err := os.RemoveAll(folder); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove what a killed host left: %w", err)
	}
	return nil
}
