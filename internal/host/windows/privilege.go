//go:build windows

// Privileges lie unused in a process's token until AdjustTokenPrivileges turns them on.

package windows

import (
	"fmt"

	"golang.org/x/sys/windows"
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

// enablePrivilege turns on a privilege that the process's token has but does not use.
func enablePrivilege(name string) error {
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY,
		&token); err != nil {
		return fmt.Errorf("open the process's token: %w", err)
	}
	defer func() { _ = token.Close() }()
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return fmt.Errorf("privilege %q: %w", name, err)
	}
	wanted := windows.Tokenprivileges{PrivilegeCount: 1}
	wanted.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, text, &wanted.Privileges[0].Luid); err != nil {
		return fmt.Errorf("look up privilege %s: %w", name, err)
	}
	// Windows reports success also when the token lacks the privilege; the call that needs it then fails and says so.
	if err := windows.AdjustTokenPrivileges(token, false, &wanted, 0, nil, nil); err != nil {
		return fmt.Errorf("enable privilege %s: %w", name, err)
	}
	return nil
}
