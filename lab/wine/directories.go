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

// Names below Base.Dir.
const (
	hostsDir = "hosts"
	binDir   = "bin"
	lockName = "lock"
)

// lockExclusive waits for a lock file and creates the file if missing. The lock is released when the file is closed or
// the process ends.
func lockExclusive(path string) (*os.File, error) { return acquireFileLock(path, unix.LOCK_EX) }

func acquireFileLock(path string, how int) (*os.File, error) {
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

// newLockedDirectory creates the directory of a host below dir and locks it. The lock marks that the creator is alive.
func newLockedDirectory(dir, name string) (directory string, held *os.File, err error) {
	all, err := lockExclusive(filepath.Join(dir, lockName)) // without the lock, a sweep could find the directory before it is locked
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	if directory, err = os.MkdirTemp(dir, strings.ToLower(name)+"-"); err != nil {
		return "", nil, err
	}
	held, err = lockExclusive(filepath.Join(directory, wire.LockFile))
	return directory, held, err
}

// sweepHosts removes the directories of hosts that outlived a killed creator.
func sweepHosts(dir string) error {
	all, err := lockExclusive(filepath.Join(dir, lockName))
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
			errs = append(errs, sweepDirectory(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

func sweepDirectory(dir string) error {
	held, err := acquireFileLock(filepath.Join(dir, wire.LockFile), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its creator is alive
	}
	if err != nil {
		return err
	}
	defer held.Close()
	// A host that is terminating now still has files. The next sweep removes the directory.
	if err := os.RemoveAll(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove what a killed host left: %w", err)
	}
	return nil
}
