//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// translateError adds the host error, such as host.ErrNotExist, to the error of a Win32 call and keeps the message of
// Windows.
func translateError(err error) error {
	var code windows.Errno
	if err == nil || !errors.As(err, &code) {
		return err
	}
	if means := errorMeaning(uint32(code)); means != nil && !errors.Is(err, means) {
		return classifiedError{err, means}
	}
	return err
}

// runDetached runs calls that Windows cannot cancel, such as StartService, which waits for the process of the service.
// If ctx ends first, runDetached returns and the calls continue in the background. Therefore the function
// passed as calls must own all data that it uses and must check ctx between two calls.
func runDetached(ctx context.Context, calls func() error) error {
	_, err := callDetached(ctx, func() (struct{}, error) { return struct{}{}, calls() })
	return err
}

// callDetached is the variant of runDetached for calls that return a value.
func callDetached[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	if ctx.Err() != nil {
		return *new(T), context.Cause(ctx)
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return *new(T), fmt.Errorf("no response from Windows: %w", context.Cause(ctx))
	}
}

// waitForObject waits until a kernel object is signaled. A process is signaled when it has ended.
func waitForObject(ctx context.Context, object windows.Handle) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	canceled, release, err := cancelEvent(ctx)
	if err != nil {
		return err
	}
	defer release()
	which, err := windows.WaitForMultipleObjects([]windows.Handle{object, canceled}, false, windows.INFINITE)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if which != windows.WAIT_OBJECT_0 {
		return context.Cause(ctx)
	}
	return nil
}

// cancelEvent returns an event that is set when ctx is done. The caller must call release after the last use.
func cancelEvent(ctx context.Context) (event windows.Handle, release func(), err error) {
	if event, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		return 0, nil, fmt.Errorf("create the cancellation event: %w", err)
	}
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(set)
		_ = windows.SetEvent(event) // fails only for an invalid handle; this handle is valid until release
	})
	return event, func() {
		if !stop() {
			<-set
		}
		_ = windows.CloseHandle(event)
	}, nil
}
