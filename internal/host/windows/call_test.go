//go:build windows

package windows

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestRunDetached_CanceledCallerDoesNotWait(t *testing.T) {
	why := errors.New("the caller has no more time")
	t.Run("a caller that leaves does not wait for the call", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		release, began := make(chan struct{}), make(chan struct{})
		go func() {
			<-began
			cancel(why)
		}()
		if err := runDetached(ctx, func() error { close(began); <-release; return nil }); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		close(release)
	})
	t.Run("nothing is called for a caller that left before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := runDetached(ctx, func() error { t.Error("called"); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the caller gets the call's error", func(t *testing.T) {
		if err := runDetached(t.Context(), func() error { return why }); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitForObject(t *testing.T) {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(event)
	t.Run("a caller that leaves does not wait for the object", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- waitForObject(ctx, event) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the wait ends when the object is signaled", func(t *testing.T) {
		done := make(chan error)
		go func() { done <- waitForObject(t.Context(), event) }()
		if err := windows.SetEvent(event); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTranslateError(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{windows.ERROR_SERVICE_DOES_NOT_EXIST, host.ErrNotExist},
		{windows.ERROR_FILE_NOT_FOUND, host.ErrNotExist},
		{windows.ERROR_SERVICE_MARKED_FOR_DELETE, host.ErrInUse},
		{windows.ERROR_SERVICE_DEPENDENCY_FAIL, host.ErrDependency},
		{windows.ERROR_DISK_FULL, host.ErrDiskFull},
	} {
		if got := translateError(c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) || got.Error() != c.err.Error() {
			t.Errorf("%v: got %v, want it to be %v as well", c.err, got, c.want)
		}
	}
	if translateError(nil) != nil || !errors.Is(translateError(windows.ERROR_ACCESS_DENIED), windows.ERROR_ACCESS_DENIED) {
		t.Error("what has no meaning does not stay what it is")
	}
}
