//go:build windows

package windows

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestAppend(t *testing.T) {
	add := host.WriteOptions{Append: true}
	t.Run("makes the file, and then adds to it", func(t *testing.T) {
		path := newTestDirectory(t) + `\log`
		writeFile(t, path, "one\r\n", add)
		writeFile(t, path, "two\r\n", add)
		if got := get(t, path); got != "one\r\ntwo\r\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("works while others read the file and after it got another name", func(t *testing.T) {
		path := newTestDirectory(t) + `\log`
		writeFile(t, path, "one\r\n", add)
		reader, err := files{}.Open(t.Context(), path)
		requireNoError(t, err)
		defer func() { _ = reader.Close() }()
		writeFile(t, path, "two\r\n", add)
		requireNoError(t, tree{}.Rename(t.Context(), path, path+".1"))
		writeFile(t, path, "three\r\n", add)
		if got := get(t, path+".1") + get(t, path); got != "one\r\ntwo\r\nthree\r\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("needs the folder", func(t *testing.T) {
		err := files{}.Write(t.Context(), newTestDirectory(t)+`\none\log`, strings.NewReader("x"), add)
		requireError(t, err, host.ErrNotExist)
	})
	t.Run("makes no file anew that must not be there", func(t *testing.T) {
		path := newTestDirectory(t) + `\log`
		writeFile(t, path, "one", add)
		requireError(t, files{}.Write(t.Context(), path, strings.NewReader("x"), host.WriteOptions{Append: true, Exclusive: true}),
			host.ErrExist)
	})
}
