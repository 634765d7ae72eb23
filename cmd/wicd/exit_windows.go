package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// exit ends the process. After a failure, a call of Windows may hang on another thread, for example a call of
// DISM. An orderly end would run the cleanup of the library of that call, and could hang as well.
func exit(code int) {
	if code != 0 {
		_ = windows.TerminateProcess(windows.CurrentProcess(), uint32(code)) //nolint:gosec // codes are small
	}
	os.Exit(code)
}
