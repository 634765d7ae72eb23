//go:build windows

package windows

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

func TestAwaitExit_RemainingProcessEnded(t *testing.T) {
	staying := func(t *testing.T) (*exec.Cmd, windows.Handle) {
		t.Helper()
		self, err := executablePath()
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(self, programFlag+"child")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
		process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(command.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = windows.CloseHandle(process) })
		return command, process
	}
	t.Run("one that goes on after the grace is ended", func(t *testing.T) {
		_, process := staying(t)
		if err := awaitExit(t.Context(), process, time.Millisecond); err != nil || !hasEnded(process) {
			t.Errorf("it has ended: %v, error %v", hasEnded(process), err)
		}
	})
	t.Run("one that ends by itself is left to do so", func(t *testing.T) {
		command, process := staying(t)
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := awaitExit(t.Context(), process, time.Hour); err != nil {
			t.Error(err)
		}
	})
	t.Run("a caller that leaves before ends nothing", func(t *testing.T) {
		_, process := staying(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := awaitExit(ctx, process, time.Hour); !errors.Is(err, context.Canceled) || hasEnded(process) {
			t.Errorf("it has ended: %v, error %v", hasEnded(process), err)
		}
	})
}

func TestIsProcessEndedError(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, windows.ERROR_SERVICE_NOT_ACTIVE: true, windows.ERROR_BROKEN_PIPE: true,
		windows.ERROR_NO_DATA:                 true,
		windows.ERROR_SERVICE_REQUEST_TIMEOUT: false, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL: false,
		windows.ERROR_DEPENDENT_SERVICES_RUNNING: false,
	} {
		if got := isProcessEndedError(err); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
