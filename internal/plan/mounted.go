package plan

import (
	"maps"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// mounted reports whether a folder waits for a restart of the host, which frees its files.
func (f Facts) mounted(path string) bool {
	boot, known := f.Ledger.InUse[path]
	return known && boot == f.System.BootID
}

// AwaitsRestart records that files of the folder are in use, and reports whether a restart may free them: those of
// containers whose layers are still mounted. After a restart in vain, another would be no better.
func (l Ledger) AwaitsRestart(path, bootID string) (Ledger, bool) {
	before, known := l.InUse[path]
	if !l.Removing || !nodespec.Within(path, nodespec.ContainerdData) || known && before != bootID {
		return l, false
	}
	l.InUse = maps.Clone(l.InUse)
	if l.InUse == nil {
		l.InUse = map[string]string{}
	}
	l.InUse[path] = bootID
	return l, true
}
