//go:build windows

// The machine-wide environment is a registry key, as Windows documents it; there is no call for it. Programs with a
// window learn of a change by WM_SETTINGCHANGE. The service control manager does not: services see it after a reboot.

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

// environment is host.Environment.
type environment struct{}

var errVariableName = errors.New("the name of the environment variable is not allowed")

// Get returns all variables. References to others (%SystemRoot%) stand as they are.
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
			continue // no variable, or gone meanwhile
		case err != nil:
			return nil, fmt.Errorf("read environment variable %s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}

// Set makes or changes a variable. One that is there keeps the case of its name and whether references in it are
// resolved; in a new one they are not, so that a percent sign in a proxy's password means itself.
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

// Unset takes a variable away.
func (environment) Unset(ctx context.Context, name string) error {
	return changeEnvironment(ctx, "remove environment variable "+name, func(key registry.Key) (bool, error) {
		err := key.DeleteValue(name)
		if errors.Is(err, registry.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
}

// changeEnvironment does a change, which reports whether it changed anything.
func changeEnvironment(ctx context.Context, what string, change func(registry.Key) (bool, error)) error {
	err := await(ctx, func() error {
		key, err := openEnvironment(registry.QUERY_VALUE | registry.SET_VALUE)
		if err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
		changed, err := change(key)
		if err != nil {
			return translate(err)
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
		return 0, fmt.Errorf("open the machine's environment: %w", translate(err))
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

// announceEnvironment tells programs with a window of the change. That none hears it is no error: on a server there is
// often none.
func announceEnvironment() {
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageTimeoutW")
	area, err := windows.UTF16PtrFromString("Environment")
	if err != nil || send.Find() != nil {
		return
	}
	_, _, _ = send.Call(broadcast, settingChange, 0, uintptr(unsafe.Pointer(area)), abortIfHung, announcePatience, 0)
}
