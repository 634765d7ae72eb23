//go:build windows

package windows

import (
	"context"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// dismAPI skips the test on systems without the DISM API.
func dismAPI(t *testing.T) {
	t.Helper()
	if err := dism.library.Load(); err != nil {
		t.Skipf("NOT SHOWN HERE: optional features (%v)", err)
	}
}

func TestFeatures(t *testing.T) {
	t.Run("the state lies where dismapi.h, packed to one byte, has it", func(t *testing.T) {
		if at := unsafe.Offsetof(dismFeatureInfo{}.state); at != 8 {
			t.Errorf("at byte %d", at)
		}
	})
	t.Run("a Windows without the DISM API says so", func(t *testing.T) {
		if dism.library.Load() == nil {
			t.Skip("this one has it")
		}
		if state, err := (features{}).State(t.Context(), "Containers"); err == nil || state != host.FeatureUnknown {
			t.Errorf("%s, %v", state, err)
		}
	})
	t.Run("a feature that this Windows does not have is unknown and cannot be changed", func(t *testing.T) {
		dismAPI(t)
		const name = "wmco-no-such-feature"
		state, err := features{}.State(t.Context(), name)
		requireNoError(t, err)
		if state != host.FeatureUnknown {
			t.Error(state)
		}
		requireError(t, features{}.Enable(t.Context(), name), host.ErrNotExist)
		requireError(t, features{}.Disable(t.Context(), name), host.ErrNotExist)
	})
	t.Run("the feature for containers is known", func(t *testing.T) {
		dismAPI(t)
		state, err := features{}.State(t.Context(), "Containers")
		requireNoError(t, err)
		if state == host.FeatureUnknown {
			t.Error("unknown")
		}
	})
	t.Run("a feature whose files were removed is reported so, over SSH too", func(t *testing.T) {
		dismAPI(t)
		const key = `SOFTWARE\wmco-lab\features\TelnetClient`
		feature, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.ALL_ACCESS)
		if err != nil {
			t.Skipf("NOT SHOWN HERE: removed files (%v)", err)
		}
		defer func() { _ = feature.Close() }()
		state, _, err := feature.GetIntegerValue("State")
		requireNoError(t, err)
		requireNoError(t, feature.SetDWordValue("State", uint32(dismRemoved)))
		defer func() { requireNoError(t, feature.SetDWordValue("State", uint32(state))) }()
		for _, want := range []string{"0x80070005", "0x800f081f"} { // in a session of the SSH server, and in a service
			err := features{}.Enable(t.Context(), "TelnetClient")
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "on the disk: enable the feature at the console") {
				t.Errorf("the error is %v, want %s", err, want)
			}
			t.Setenv("SSH_CONNECTION", "")
			requireNoError(t, os.Unsetenv("SSH_CONNECTION"))
		}
	})
	t.Run("nothing is changed when the context is done", func(t *testing.T) {
		dismAPI(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		requireError(t, features{}.Enable(ctx, "TelnetClient"), context.Canceled)
	})
}
