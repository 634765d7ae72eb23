//go:build windows

package windows

import (
	"os"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestLinks(t *testing.T) {
	t.Run("a link to a folder is described as a link and removed without what it leads to", func(t *testing.T) {
		dir := folder(t)
		links(t, dir)
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\target`, ""))
		put(t, dir+`\target\file`, "x", host.WriteOptions{})
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\sub`, ""))
		must(t, tree{}.Symlink(t.Context(), dir+`\target`, dir+`\sub\link`))
		info, err := files{}.Stat(t.Context(), dir+`\sub\link`)
		must(t, err)
		if info.LinkTarget != dir+`\target` || info.Directory {
			t.Errorf("%+v", info)
		}
		must(t, files{}.Remove(t.Context(), dir+`\sub`))
		if get(t, dir+`\target\file`) != "x" {
			t.Error("the target is gone")
		}
	})
	t.Run("links to files and folders replace each other and files, but no folder", func(t *testing.T) {
		dir := folder(t)
		links(t, dir)
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		put(t, dir+`\file`, "x", host.WriteOptions{})
		put(t, dir+`\link`, "was a file", host.WriteOptions{})
		for _, target := range []string{`\folder`, `\file`, `\folder`, `\folder`, `\none`} {
			must(t, tree{}.Symlink(t.Context(), dir+target, dir+`\link`))
			info, err := files{}.Stat(t.Context(), dir+`\link`)
			must(t, err)
			if info.LinkTarget != dir+target {
				t.Errorf("%+v", info)
			}
		}
		put(t, dir+`\link`, "a file again", host.WriteOptions{})
		if get(t, dir+`\file`) != "x" || names(t, dir) != "file folder link" {
			t.Error(names(t, dir))
		}
		fails(t, tree{}.Symlink(t.Context(), dir+`\file`, dir+`\folder`), host.ErrExist)
	})
	t.Run("a file replaces a link to a folder", func(t *testing.T) {
		dir := folder(t)
		links(t, dir)
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		must(t, os.Symlink(dir+`\folder`, dir+`\link`))
		put(t, dir+`\link`, "file", host.WriteOptions{})
		if get(t, dir+`\link`) != "file" || names(t, dir+`\folder`) != "" {
			t.Error(names(t, dir))
		}
	})
	t.Run("a folder is not replaced by a file", func(t *testing.T) {
		dir := folder(t)
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\folder`, ""))
		put(t, dir+`\file`, "x", host.WriteOptions{})
		fails(t, tree{}.Rename(t.Context(), dir+`\file`, dir+`\folder`), host.ErrExist)
	})
}
