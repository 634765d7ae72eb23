package windows

import (
	"errors"
	"reflect"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestExclusionsOf(t *testing.T) {
	t.Run("each value is one of its kind", func(t *testing.T) {
		list, err := exclusionsOf(host.ExcludeProcess, []string{`C:\k\containerd.exe`, `D:\Ä.exe`})
		want := []host.Exclusion{{Kind: host.ExcludeProcess, Value: `C:\k\containerd.exe`},
			{Kind: host.ExcludeProcess, Value: `D:\Ä.exe`}}
		if err != nil || !reflect.DeepEqual(list, want) {
			t.Errorf("got %v, %v", list, err)
		}
	})
	t.Run("no value is none", func(t *testing.T) {
		if list, err := exclusionsOf(host.ExcludePath, nil); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v", list, err)
		}
	})
	t.Run("a list that a policy hides is not taken for a list", func(t *testing.T) {
		for _, text := range []string{"N/A: Administrators are not allowed to view exclusions",
			"N/A: Must be an administrator to view exclusions"} {
			if _, err := exclusionsOf(host.ExcludePath, []string{text}); !errors.Is(err, host.ErrRefused) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
	t.Run("a kind that Defender does not know has no property", func(t *testing.T) {
		if name, err := exclusionProperty("Extension"); err == nil {
			t.Errorf("got %s", name)
		}
	})
}

func TestWMIMeaning(t *testing.T) {
	for code, want := range map[uint32]error{
		0x80041003: host.ErrRefused, 0x80070005: host.ErrRefused, 0x800106ba: host.ErrNoAntivirus, 0x80041001: nil, 0: nil,
	} {
		if got := wmiMeaning(code); !errors.Is(got, want) {
			t.Errorf("0x%08x means %v, want %v", code, got, want)
		}
	}
}
