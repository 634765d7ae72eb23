//go:build windows

// The restart is asked for with ExitWindowsEx, as WMI's Win32Shutdown does it for Restart-Computer: it works from a
// service and from an SSH session and takes a reason code for the system log. The reason in words is in the errors here
// and in the agent's own report.

package windows

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// power is host.Power.
type power struct{}

// restartReason is what the system log says of a planned restart by an application that changed the configuration.
const restartReason = windows.SHTDN_REASON_MAJOR_APPLICATION | windows.SHTDN_REASON_MINOR_RECONFIG | windows.SHTDN_REASON_FLAG_PLANNED

// Reboot asks Windows to restart now. Programs of logged-in users are not asked: on a server nobody answers. Services
// get their shutdown notice as always. A restart that is under way already is no error.
func (power) Reboot(ctx context.Context, reason string) error {
	return await(ctx, func() error {
		if err := enablePrivilege(shutdownPrivilege); err != nil {
			return fmt.Errorf("restart Windows (%s): take the right to shut down: %w", reason, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := windows.ExitWindowsEx(windows.EWX_REBOOT|windows.EWX_FORCE, restartReason)
		if err != nil && !errors.Is(err, windows.ERROR_SHUTDOWN_IN_PROGRESS) {
			return fmt.Errorf("restart Windows (%s): %w; restart the host by hand", reason, err)
		}
		return nil
	})
}
