//go:build windows

package windows

import (
	"slices"
	"testing"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestServiceEnvironment(t *testing.T) {
	const path = `SOFTWARE\wmco-environment-test`
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, path,
		registry.ALL_ACCESS|windows.WRITE_DAC|windows.WRITE_OWNER)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = key.Close()
		if err := registry.DeleteKey(registry.LOCAL_MACHINE, path); err != nil {
			t.Error(err)
		}
	})
	set := func(list []string, want host.Access) {
		t.Helper()
		if err := setEnvironment(key, list); err != nil {
			t.Fatal(err)
		}
		access, err := keyAccess(key)
		if err != nil || access != want {
			descriptor, _ := windows.GetSecurityInfo(windows.Handle(key), windows.SE_REGISTRY_KEY, accessParts)
			t.Errorf("access %q, %v, want %q; it is %s", access, err, want, descriptor)
		}
		got, _, err := key.GetStringsValue(environmentValue)
		if !slices.Equal(got, list) {
			t.Errorf("environment %q, %v, want %q", got, err, list)
		}
	}
	t.Run("a key with an environment is for administrators", func(t *testing.T) {
		set([]string{"HTTP_PROXY=http://user:password@proxy.example"}, host.AccessAdministrators)
		set([]string{"HTTP_PROXY=http://proxy.example"}, host.AccessAdministrators)
	})
	t.Run("a key without one is as those beside it", func(t *testing.T) {
		set(nil, host.AccessInherited)
		set(nil, host.AccessInherited)
	})
}
