package windows

import (
	"errors"
	"strings"
	"testing"
)

func TestBootIDs(t *testing.T) {
	const boot, hour = 0x01d9a1b2c3d4e5f6, 3600 * 10_000_000
	t.Run("setting the clock does not look like a reboot", func(t *testing.T) {
		if before, after := bootID(boot, 0), bootID(boot+hour, hour); before != after {
			t.Errorf("%s became %s", before, after)
		}
		var back int64 = -hour
		if before, after := bootID(boot, 0), bootID(boot+back, uint64(back)); before != after {
			t.Errorf("%s became %s", before, after)
		}
	})
	t.Run("another boot has another name", func(t *testing.T) {
		if bootID(boot, 0) == bootID(boot+1, 0) {
			t.Error("the same")
		}
	})
}

func TestArchitectures(t *testing.T) {
	for machine, want := range map[uint16]string{0x8664: "amd64", 0xaa64: "arm64", 0x14c: "386",
		0x1c4: "machine type 0x1c4"} {
		if got := architectureName(machine); got != want {
			t.Errorf("%#x: got %s, want %s", machine, got, want)
		}
	}
}

func TestHostNames(t *testing.T) {
	for _, name := range []string{"w", "win-1", "WORKER-2022", "1a", strings.Repeat("a", 63)} {
		if err := checkHostName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-a", "a-", "a_b", "a.b", "a b", "123", "ä", strings.Repeat("a", 64), "a\x00"} {
		if err := checkHostName(name); !errors.Is(err, errHostName) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
