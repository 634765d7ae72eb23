//go:build windows

// Privileges lie unused in a process's token until AdjustTokenPrivileges turns them on.

package windows

import (
	"errors"
	"fmt"

	"github.com/Microsoft/go-winio"
)

// Privileges that administrators have.
const (
	// shutdownPrivilege is the right to restart the machine.
	shutdownPrivilege = "SeShutdownPrivilege"
	// debugPrivilege is the right to any process: without it an administrator may neither end nor look into those of
	// SYSTEM, as a container runtime's and its shims' are.
	debugPrivilege = "SeDebugPrivilege"
	// backupPrivilege and restorePrivilege are the right to list and to remove also what belongs to somebody else: the
	// files in the layers of container images belong to TrustedInstaller, and administrators may only read them.
	backupPrivilege  = "SeBackupPrivilege"
	restorePrivilege = "SeRestorePrivilege"
)

// enablePrivilege turns on a privilege that the process's token has but does not use. Where the token lacks the
// privilege, the call that needs it fails and says so.
func enablePrivilege(name string) error {
	err := winio.EnableProcessPrivileges([]string{name})
	if lacked := (*winio.PrivilegeError)(nil); err != nil && !errors.As(err, &lacked) {
		return fmt.Errorf("enable privilege %s: %w", name, err)
	}
	return nil
}
