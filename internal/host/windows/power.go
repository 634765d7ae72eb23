//go:build windows

// Windows is restarted by InitiateSystemShutdownExW, as cloudbase-init does it, or by ExitWindowsEx where that fails.
// ExitWindowsEx, unlike the other, needs the right WINSTA_EXITWINDOWS on the window station of its caller, and it is
// unknown whether the window station of an SSH session grants it.

package windows

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// power is host.Power.
type power struct{}

// restartReason is the reason in the system log: a planned restart by an application that changed the configuration.
const restartReason = windows.SHTDN_REASON_MAJOR_APPLICATION | windows.SHTDN_REASON_MINOR_RECONFIG | windows.SHTDN_REASON_FLAG_PLANNED

// Reboot restarts Windows now. Programs of logged-in users are ended without a dialog; services get their shutdown
// notice. A restart that is under way is no error. The reason is the comment of the system log's event 1074.
func (power) Reboot(ctx context.Context, reason string) error {
	return await(ctx, func() error {
		if err := enablePrivilege(shutdownPrivilege); err != nil {
			return fmt.Errorf("restart Windows (%s): take the right to shut down: %w", reason, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := restartWindows(reason); err != nil {
			return fmt.Errorf("restart Windows (%s): %w; restart the host by hand", reason, err)
		}
		return nil
	})
}

// restartWindows calls both functions of Windows in turn until one accepts the restart.
func restartWindows(reason string) error {
	message, err := windows.UTF16PtrFromString(reason)
	if err != nil {
		return err
	}
	initiate := windows.InitiateSystemShutdownEx(nil, message, 0 /* seconds */, true /* force */, true /* reboot */, restartReason)
	if initiate == nil || isShuttingDown(initiate) {
		return nil
	}
	exit := windows.ExitWindowsEx(windows.EWX_REBOOT|windows.EWX_FORCE, restartReason)
	if exit == nil || isShuttingDown(exit) {
		return nil
	}
	scheduled := ""
	if errors.Is(initiate, windows.ERROR_SHUTDOWN_IS_SCHEDULED) {
		scheduled = " (\"shutdown /a\" cancels it)"
	}
	return fmt.Errorf("InitiateSystemShutdownEx: %w%s; ExitWindowsEx: %w", initiate, scheduled, exit)
}

// isShuttingDown reports whether the error is Windows' answer while a shutdown is under way. A shutdown that is only
// scheduled, maybe for the night, restarts nothing now.
func isShuttingDown(err error) bool { return errors.Is(err, windows.ERROR_SHUTDOWN_IN_PROGRESS) }
