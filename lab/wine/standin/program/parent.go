//go:build windows

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// endWithParent ends the process when its launcher ends, so that killing an executable of the payload ends its
// work.
func endWithParent() error {
	parent, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
	if err != nil {
		return fmt.Errorf("watch the launcher: %w", err)
	}
	go func() {
		if _, err := windows.WaitForSingleObject(parent, windows.INFINITE); err == nil {
			os.Exit(1)
		}
	}()
	return nil
}
