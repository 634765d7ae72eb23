package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The kernel signals the death of the parent only as long as the thread lives that requested the signal.
// Package initialization runs on the main thread, which lives as long as the process.
var (
	parentAtStart = os.Getppid()
	errDeathLink  = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
)

// dieWithParent ensures that this process is killed when its parent ends. expected is the parent's process id
// in the parent's own view, or 0. A parent that ended before the request to the kernel is detected.
func dieWithParent(expected int) error {
	if errDeathLink != nil {
		return fmt.Errorf("ask the kernel to be killed with the parent process: %w", errDeathLink)
	}
	if expected == 0 {
		expected = parentAtStart
	}
	if now := os.Getppid(); now != expected {
		return fmt.Errorf("the parent process %d has ended", expected)
	}
	return nil
}
