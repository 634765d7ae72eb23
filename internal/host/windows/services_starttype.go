//go:build windows

package windows

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// SetStartType changes the start type with ChangeServiceConfig, which leaves all else of the service as it is. The
// service may be another's, with an account and recovery actions that Configure does not know.
func (services) SetStartType(ctx context.Context, name string, start host.StartType) error {
	code, err := encodeStartType(start)
	if err == nil {
		err = await(ctx, func() error { return setStartType(name, code) })
	}
	if err != nil {
		return fmt.Errorf("set the start type of service %s: %w", name, err)
	}
	return nil
}

func setStartType(name string, start uint32) error {
	m, err := connect(windows.SC_MANAGER_CONNECT)
	if err != nil {
		return err
	}
	defer m.close()
	s, err := m.open(name, windows.SERVICE_CHANGE_CONFIG)
	if err != nil {
		return err
	}
	defer s.close()
	err = windows.ChangeServiceConfig(s.handle, windows.SERVICE_NO_CHANGE, start, windows.SERVICE_NO_CHANGE,
		nil, nil, nil, nil, nil, nil, nil)
	if err != nil {
		return translate(err)
	}
	return nil
}
