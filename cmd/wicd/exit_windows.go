package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// exit ends the process. One that has failed may have a call of Windows that hangs on another thread, as DISM's: the
// orderly end would have the library of that call clean up, and could wait for it, too.
func exit(code int) {
	if code != 0 {
		_ = windows.TerminateProcess(windows.CurrentProcess(), uint32(code)) //nolint:gosec // codes are small
	}
	os.Exit(code)
}
