package plan

import (
	"maps"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// isAwaitingRestart reports whether a directory with files in use waits for a restart of the host.
func (f Facts) isAwaitingRestart(path string) bool {
	boot, known := f.Ledger.InUse[path]
	return known && boot == f.System.BootID
}

// RecordInUse records that files of the directory are in use, and reports whether a restart may release them.
// Only files of containers with mounted layers are released. If one restart did not release the files, another
// would not either.
func (l Ledger) RecordInUse(path, bootID string) (Ledger, bool) {
	before, known := l.InUse[path]
	if !l.Removing || !nodespec.IsWithin(path, nodespec.ContainerdData) || known && before != bootID {
		return l, false
	}
	l.InUse = maps.Clone(l.InUse)
	if l.InUse == nil {
		l.InUse = map[string]string{}
	}
	l.InUse[path] = bootID
	return l, true
}
