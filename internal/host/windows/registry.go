//go:build windows

// Numbers are read with RegQueryValueEx, set with RegCreateKeyEx and RegSetValueEx, and deleted with RegDeleteValue,
// in the registry view of 64-bit programs.

package windows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// registryValues implements host.Registry.
type registryValues struct{}

func (registryValues) Number(ctx context.Context, at host.RegistryName) (value uint32, err error) {
	err = atRegistry(ctx, "read", at, func() error {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, at.Key, registry.QUERY_VALUE|registry.WOW64_64KEY)
		if err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
		number, kind, err := key.GetIntegerValue(at.Name)
		switch {
		case err != nil:
			return err
		case kind != registry.DWORD || number > math.MaxUint32:
			return fmt.Errorf("the value has type %d instead of REG_DWORD", kind)
		}
		value = uint32(number)
		return nil
	})
	return value, err
}

func (registryValues) SetNumber(ctx context.Context, at host.RegistryName, value uint32) error {
	return atRegistry(ctx, "set", at, func() error {
		key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, at.Key, registry.SET_VALUE|registry.WOW64_64KEY)
		if err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
		return key.SetDWordValue(at.Name, value)
	})
}

func (registryValues) Delete(ctx context.Context, at host.RegistryName) error {
	err := atRegistry(ctx, "delete", at, func() error {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, at.Key, registry.SET_VALUE|registry.WOW64_64KEY)
		if err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
		return key.DeleteValue(at.Name)
	})
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

func atRegistry(ctx context.Context, what string, at host.RegistryName, action func() error) error {
	err := context.Cause(ctx)
	switch {
	case err != nil:
	case at.Key == "" || at.Name == "" || strings.Trim(at.Key, `\`) != at.Key:
		err = errors.New("key or name is empty or not valid")
	default:
		err = action()
	}
	if err != nil {
		return fmt.Errorf("%s registry value %s: %w", what, at, err)
	}
	return nil
}
