//go:build windows

// Windows documents the machine-wide environment as a registry key and has no API for it. Programs with a window
// receive changes by WM_SETTINGCHANGE. The service control manager does not, so services see a change after a
// reboot.

package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

const environmentKey = `SYSTEM\CurrentControlSet\Control\Session Manager\Environment`

// environment implements host.Environment.
type environment struct{}

var errVariableName = errors.New("the name of the environment variable is not allowed")

// Get returns all variables. References to other variables (%SystemRoot%) are not resolved.
func (environment) Get(ctx context.Context) (map[string]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	key, err := openEnvironment(registry.QUERY_VALUE)
	if err != nil {
		return nil, err
	}
	defer func() { _ = key.Close() }()
	names, err := key.ReadValueNames(0)
	if err != nil {
		return nil, fmt.Errorf("list the environment variables: %w", err)
	}
	values := map[string]string{}
	for _, name := range names {
		value, _, err := key.GetStringValue(name)
		switch {
		case errors.Is(err, registry.ErrUnexpectedType), errors.Is(err, registry.ErrNotExist):
			continue // not a variable, or deleted in the meantime
		case err != nil:
			return nil, fmt.Errorf("read environment variable %s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}

// Set creates or changes a variable. An existing variable keeps the case of its name and the type, which determines
// whether references are resolved. References in a new variable are not resolved, so that a percent sign in a proxy
// password remains literal.
func (environment) Set(ctx context.Context, name, value string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("set environment variable %q: %w", name, errVariableName)
	}
	return changeEnvironment(ctx, "set environment variable "+name, func(key registry.Key) (bool, error) {
		present, kind, err := key.GetStringValue(name)
		if err == nil && present == value {
			return false, nil
		}
		if kind == registry.EXPAND_SZ {
			return true, key.SetExpandStringValue(name, value)
		}
		return true, key.SetStringValue(name, value)
	})
}

// Unset deletes a variable.
func (environment) Unset(ctx context.Context, name string) error {
	return changeEnvironment(ctx, "remove environment variable "+name, func(key registry.Key) (bool, error) {
		err := key.DeleteValue(name)
		if errors.Is(err, registry.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
}

// changeEnvironment runs change and broadcasts a modification. The function change reports whether it has modified
// the environment.
func changeEnvironment(ctx context.Context, what string, change func(registry.Key) (bool, error)) error {
	err := runDetached(ctx, func() error {
		key, err := openEnvironment(registry.QUERY_VALUE | registry.SET_VALUE)
		if err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
		changed, err := change(key)
		if err != nil {
			return translateError(err)
		}
		if changed {
			announceEnvironment()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func openEnvironment(access uint32) (registry.Key, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, environmentKey, access)
	if err != nil {
		return 0, fmt.Errorf("open the machine's environment: %w", translateError(err))
	}
	return key, nil
}

// Values of SendMessageTimeout.
const (
	broadcast        = 0xffff // HWND_BROADCAST
	settingChange    = 0x1a   // WM_SETTINGCHANGE
	abortIfHung      = 0x2    // SMTO_ABORTIFHUNG
	announcePatience = 1000   // milliseconds for each window
)

// announceEnvironment notifies programs with a window of the change. Missing receivers are no error, because a
// server often has none.
func announceEnvironment() {
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageTimeoutW")
	area, err := windows.UTF16PtrFromString("Environment")
	if err != nil || send.Find() != nil {
		return
	}
	_, _, _ = send.Call(broadcast, settingChange, 0, uintptr(unsafe.Pointer(area)), abortIfHung, announcePatience, 0)
}
