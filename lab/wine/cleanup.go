package wine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// removeDrafts removes drafts of other processes that were killed. The lock ensures that no process uses the
// drafts.
func (b *Base) removeDrafts(ctx context.Context) error {
	for _, pattern := range []string{".wine-root-*", ".standin-*", binDir + "/build-*"} {
		drafts, err := filepath.Glob(filepath.Join(b.Dir, pattern))
		if err != nil {
			return err
		}
		for _, draft := range drafts {
			// An unfinished chroot may still have mounts: never remove through a mount, as os.RemoveAll would.
			output, err := exec.CommandContext(ctx, "rm", "-rf", "--one-file-system", draft).CombinedOutput()
			if err != nil {
				return fmt.Errorf("remove the draft %s: %w: %s", draft, err, lastLines(string(output)))
			}
		}
	}
	return nil
}

// lockSuffix is the suffix of the lock of the path beside it. Users of the path hold a shared lock.
const lockSuffix = ".lock"

// lockParts locks the parts of this base and removes unused parts with other inputs.
func (b *Base) lockParts() error {
	for kind, path := range map[string]string{"root-": b.Root, "standin-": b.FakeDLLs, "prefix-": b.Prefix} {
		held, err := acquireFileLock(path+lockSuffix, unix.LOCK_SH)
		if err != nil {
			return err
		}
		b.held = append(b.held, held)
		all, err := filepath.Glob(filepath.Join(b.Dir, kind+"*"))
		if err != nil {
			return err
		}
		for _, other := range all {
			if other == path || strings.HasSuffix(other, lockSuffix) {
				continue
			}
			if err := removeUnused(other); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeUnused(path string) error {
	held, err := acquireFileLock(path+lockSuffix, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	if err := errors.Join(os.RemoveAll(path), os.Remove(path+lockSuffix)); err != nil {
		return fmt.Errorf("remove what is out of date: %w", err)
	}
	return nil
}
