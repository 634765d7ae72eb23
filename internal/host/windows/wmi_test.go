//go:build windows

package windows

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"
)

// inNamespace calls ask with a WMI namespace that exists on every Windows.
func inNamespace[T any](t *testing.T, ask func(service *ole.IDispatch) (T, error)) T {
	t.Helper()
	value, err := runInCOM(t.Context(), func() (T, error) {
		service, err := connectWMI(`ROOT\CIMV2`)
		if err != nil {
			return *new(T), err
		}
		defer service.Release()
		return ask(service)
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWMI(t *testing.T) {
	t.Run("the instances of a class are read", func(t *testing.T) {
		names := inNamespace(t, func(service *ole.IDispatch) (names []string, err error) {
			instances, err := callObject(service, "InstancesOf", "Win32_OperatingSystem")
			if err != nil {
				return nil, err
			}
			defer instances.Release()
			return names, forEachItem(instances, wmiError, func(item *ole.VARIANT) error {
				r := propertyReader{object: item.ToIDispatch()}
				names = append(names, r.readString("CSName"))
				return r.err
			})
		})
		if len(names) != 1 || names[0] == "" {
			t.Errorf("got %q", names)
		}
	})
	t.Run("an array of strings is read", func(t *testing.T) {
		arrays := inNamespace(t, func(service *ole.IDispatch) (arrays [][]string, err error) {
			instances, err := callObject(service, "InstancesOf", "Win32_NetworkAdapterConfiguration")
			if err != nil {
				return nil, err
			}
			defer instances.Release()
			return arrays, forEachItem(instances, wmiError, func(item *ole.VARIANT) error {
				texts, err := stringsIn(item.ToIDispatch(), "IPAddress")
				if texts != nil {
					arrays = append(arrays, texts)
				}
				return err
			})
		})
		if len(arrays) == 0 || arrays[0][0] == "" {
			t.Errorf("got %q", arrays)
		}
	})
	t.Run("a method takes its parameter and returns a number", func(t *testing.T) {
		const notImplemented = 0x80004001
		absent := false
		returned := inNamespace(t, func(service *ole.IDispatch) (uint32, error) {
			returned, err := callClass(service, "StdRegProv", "EnumKey", "sSubKeyName", `SOFTWARE\no such key`)
			var failure *ole.OleError
			if absent = errors.As(err, &failure) && codeOf(failure) == notImplemented; absent {
				err = nil
			}
			return returned, err
		})
		if absent {
			t.Skip("NOT SHOWN HERE: this machine's WMI takes no parameters (SpawnInstance_ is not implemented)")
		}
		if returned != uint32(windows.ERROR_FILE_NOT_FOUND) {
			t.Errorf("it returns %d", returned)
		}
	})
	t.Run("what is not there is an error with its code", func(t *testing.T) {
		_, err := runInCOM(t.Context(), func() (*ole.IDispatch, error) { return connectWMI(`ROOT\no\such\namespace`) })
		var failure *ole.OleError
		if !errors.As(err, &failure) {
			t.Errorf("got %v", err)
		}
		if !strings.Contains(err.Error(), "0x8004100e") {
			t.Errorf("the code is not in %q", err)
		}
	})
}
