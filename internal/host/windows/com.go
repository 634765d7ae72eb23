//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/go-ole/go-ole"
)

// runInCOM runs do on a dedicated thread in COM's multithreaded apartment (CoInitializeEx with COINIT_MULTITHREADED).
// COM initialization belongs to a thread, and goroutines move between threads.
func runInCOM[T any](ctx context.Context, do func() (T, error)) (T, error) {
	return callDetached(ctx, func() (value T, err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err = withCOM(func() error { value, err = do(); return err })
		return value, err
	})
}

func withCOM(do func() error) error {
	const alreadyInitialized = 1 // S_FALSE
	err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED)
	var status *ole.OleError
	if errors.As(err, &status) && status.Code() == alreadyInitialized {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("join COM's multithreaded apartment: %w", err)
	}
	defer ole.CoUninitialize()
	return do()
}
