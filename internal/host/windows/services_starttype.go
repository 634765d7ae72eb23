//go:build windows

package windows

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// SetStartType changes the start type with ChangeServiceConfig, which keeps all other settings. The service may be
// foreign, with an account and recovery actions that Configure does not support.
func (services) SetStartType(ctx context.Context, name string, start host.StartType) error {
	code, err := encodeStartType(start)
	if err == nil {
		err = runDetached(ctx, func() error { return setStartType(name, code) })
	}
	if err != nil {
		return fmt.Errorf("set the start type of service %s: %w", name, err)
	}
	return nil
}

func setStartType(name string, start uint32) error {
	return withService(name, windows.SERVICE_CHANGE_CONFIG, func(s service) error {
		return translateError(windows.ChangeServiceConfig(s.Handle, windows.SERVICE_NO_CHANGE, start, windows.SERVICE_NO_CHANGE,
			nil, nil, nil, nil, nil, nil, nil))
	})
}
