package windows

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPath(t *testing.T) {
	t.Run("paths are cleaned", func(t *testing.T) {
		for input, want := range map[string]string{
			`C:\k\kubelet.exe`:       `C:\k\kubelet.exe`,
			`c:/k//cni/./config/`:    `C:\k\cni\config`,
			`d:\a\..\..\b`:           `D:\b`,
			`C:\`:                    `C:\`,
			`C:`:                     `C:\`,
			`C:\Program Files\a.b.c`: `C:\Program Files\a.b.c`,
			`C:\console\com10\x.nul`: `C:\console\com10\x.nul`,
		} {
			p, err := parsePath(input)
			if err != nil || p.String() != want || p.extendedPath() != `\\?\`+want {
				t.Errorf("%s: got %s, %v, want %s", input, p, err, want)
			}
		}
	})
	t.Run("what is no absolute path on a drive, or what Windows would change, is refused", func(t *testing.T) {
		for _, path := range []string{
			``, `k`, `\k`, `C`, `C:k`, `1:\k`, `\\server\share\file`, `\\?\C:\k`, `\\.\pipe\x`,
			`C:\a<b`, `C:\a>b`, `C:\a:stream`, `C:\a"b`, `C:\a|b`, `C:\a?b`, `C:\a*b`, "C:\\a\x01", "C:\\a\x00b",
			`C:\dot.`, `C:\blank `, `C:\dot.\below`, `C:\nul`, `C:\CON`, `C:\aux.txt`, `C:\com1`, `C:\LPT9.log`, `C:\nul .txt`,
			`C:\` + strings.Repeat("x", 256),
		} {
			if p, err := parsePath(path); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: got %s, %v", path, p, err)
			}
		}
	})
	t.Run("children and siblings do not share memory", func(t *testing.T) {
		p, err := parsePath(`C:\a\b`)
		if err != nil {
			t.Fatal(err)
		}
		one, two := p.childPath("1"), p.childPath("2")
		beside := p.siblingPath("c")
		if one.String() != `C:\a\b\1` || two.String() != `C:\a\b\2` || beside.String() != `C:\a\c` ||
			p.String() != `C:\a\b` || p.baseName() != "b" {
			t.Errorf("%s %s %s %s", one, two, beside, p)
		}
		if !p.isSamePath(drivePath{"C:", []string{"A", "B"}}) || p.isSamePath(one) {
			t.Error("same")
		}
	})
	t.Run("a clean path stays as it is", rapid.MakeCheck(func(t *rapid.T) {
		p, err := parsePath(`C:\` + rapid.String().Draw(t, "path"))
		if err != nil {
			t.Skip("no path")
		}
		if again, err := parsePath(p.String()); err != nil || again.String() != p.String() {
			t.Fatalf("%s became %s, %v", p, again, err)
		}
	}))
}
