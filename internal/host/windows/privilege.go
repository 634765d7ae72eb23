//go:build windows

// Privileges are disabled in a process token until AdjustTokenPrivileges enables them.

package windows

import (
	"errors"
	"fmt"

	"github.com/Microsoft/go-winio"
)

// Privileges of administrators.
const (
	// shutdownPrivilege allows a restart of the machine.
	shutdownPrivilege = "SeShutdownPrivilege"
	// debugPrivilege allows access to any process. Without the privilege, administrators cannot end or inspect
	// processes of SYSTEM, such as a container runtime and its shims.
	debugPrivilege = "SeDebugPrivilege"
	// backupPrivilege and restorePrivilege allow listing and removing files of other owners. The files in the layers
	// of container images belong to TrustedInstaller, and administrators may only read them.
	backupPrivilege  = "SeBackupPrivilege"
	restorePrivilege = "SeRestorePrivilege"
)

// enablePrivilege enables a privilege in the process token. If the token lacks the privilege, the call that needs it
// fails with a clear error.
func enablePrivilege(name string) error {
	err := winio.EnableProcessPrivileges([]string{name})
	if lacked := (*winio.PrivilegeError)(nil); err != nil && !errors.As(err, &lacked) {
		return fmt.Errorf("enable privilege %s: %w", name, err)
	}
	return nil
}
