//go:build windows

package windows

import (
	"os"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestLinks(t *testing.T) {
	t.Run("a link to a folder is described as a link and removed without what it leads to", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireSymlinks(t, dir)
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\target`, ""))
		writeFile(t, dir+`\target\file`, "x", host.WriteOptions{})
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\sub`, ""))
		requireNoError(t, tree{}.Symlink(t.Context(), dir+`\target`, dir+`\sub\link`))
		info, err := files{}.Stat(t.Context(), dir+`\sub\link`)
		requireNoError(t, err)
		if info.LinkTarget != dir+`\target` || info.Directory {
			t.Errorf("%+v", info)
		}
		requireNoError(t, files{}.Remove(t.Context(), dir+`\sub`))
		if get(t, dir+`\target\file`) != "x" {
			t.Error("the target is gone")
		}
	})
	t.Run("links to files and folders replace each other and files, but no folder", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireSymlinks(t, dir)
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		writeFile(t, dir+`\file`, "x", host.WriteOptions{})
		writeFile(t, dir+`\link`, "was a file", host.WriteOptions{})
		for _, target := range []string{`\folder`, `\file`, `\folder`, `\folder`, `\none`} {
			requireNoError(t, tree{}.Symlink(t.Context(), dir+target, dir+`\link`))
			info, err := files{}.Stat(t.Context(), dir+`\link`)
			requireNoError(t, err)
			if info.LinkTarget != dir+target {
				t.Errorf("%+v", info)
			}
		}
		writeFile(t, dir+`\link`, "a file again", host.WriteOptions{})
		if get(t, dir+`\file`) != "x" || listNames(t, dir) != "file folder link" {
			t.Error(listNames(t, dir))
		}
		requireError(t, tree{}.Symlink(t.Context(), dir+`\file`, dir+`\folder`), host.ErrExist)
	})
	t.Run("a file replaces a link to a folder", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireSymlinks(t, dir)
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		requireNoError(t, os.Symlink(dir+`\folder`, dir+`\link`))
		writeFile(t, dir+`\link`, "file", host.WriteOptions{})
		if get(t, dir+`\link`) != "file" || listNames(t, dir+`\folder`) != "" {
			t.Error(listNames(t, dir))
		}
	})
	t.Run("a folder is not replaced by a file", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		writeFile(t, dir+`\file`, "x", host.WriteOptions{})
		requireError(t, tree{}.Rename(t.Context(), dir+`\file`, dir+`\folder`), host.ErrExist)
	})
}
