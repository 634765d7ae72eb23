//go:build windows

// Windows is restarted with InitiateSystemShutdownExW, as in cloudbase-init, or with ExitWindowsEx if the first call
// fails. Only ExitWindowsEx needs the right WINSTA_EXITWINDOWS on the window station of its caller. It is unknown
// whether the window station of an SSH session grants this right.

package windows

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// power implements host.Power.
type power struct{}

// restartReason is the reason in the system log: a planned restart by an application after a configuration change.
const restartReason = windows.SHTDN_REASON_MAJOR_APPLICATION | windows.SHTDN_REASON_MINOR_RECONFIG | windows.SHTDN_REASON_FLAG_PLANNED

// Reboot restarts Windows immediately. Programs of logged-in users are ended without a dialog, and services receive
// their shutdown notification. A restart in progress is no error. The reason is the comment of event 1074 in the
// system log.
func (power) Reboot(ctx context.Context, reason string) error {
	return runDetached(ctx, func() error {
		if err := enablePrivilege(shutdownPrivilege); err != nil {
			return fmt.Errorf("restart Windows (%s): %w", reason, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := restartWindows(reason); err != nil {
			return fmt.Errorf("restart Windows (%s): %w; restart the host manually", reason, err)
		}
		return nil
	})
}

// restartWindows calls both Windows functions in order until one function accepts the restart.
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
		scheduled = " (\"shutdown /a\" cancels the scheduled restart)"
	}
	return fmt.Errorf("InitiateSystemShutdownEx: %w%s; ExitWindowsEx: %w", initiate, scheduled, exit)
}

// isShuttingDown reports whether the error means that a shutdown is in progress. A scheduled shutdown, possibly
// hours later, does not restart the machine now.
func isShuttingDown(err error) bool { return errors.Is(err, windows.ERROR_SHUTDOWN_IN_PROGRESS) }
