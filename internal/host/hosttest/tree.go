package hosttest

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func testTree(t *testing.T, open func(*testing.T) *suite) {
	const folder, file = Scratch + `\folder`, Scratch + `\file`

	t.Run("a folder needs the one above it", func(t *testing.T) {
		s := open(t)
		s.fails(s.Tree.MakeDirectory(s.ctx, folder+`\below`, host.AccessInherited), host.ErrNotExist)
	})
	t.Run("making a folder that is there only sets who may use it", func(t *testing.T) {
		s := open(t)
		s.must(s.Tree.MakeDirectory(s.ctx, folder, host.AccessInherited))
		s.write(folder+`\file`, "x")
		s.must(s.Tree.MakeDirectory(s.ctx, folder, host.AccessAdministrators))
		is(s, "content", s.read(folder+`\file`), "x")
		s.needs(s.can.Access, "access control lists")
		info, err := s.Files.Stat(s.ctx, folder)
		s.must(err)
		is(s, "access", info.Access, host.AccessAdministrators)
	})
	t.Run("a folder cannot be made where a file is", func(t *testing.T) {
		s := open(t)
		s.write(file, "x")
		s.fails(s.Tree.MakeDirectory(s.ctx, file, host.AccessInherited), host.ErrExist)
	})
	t.Run("a rename moves a file onto another", func(t *testing.T) {
		s := open(t)
		s.write(file, "new")
		s.write(Scratch+`\second`, "old")
		s.must(s.Tree.Rename(s.ctx, file, Scratch+`\second`))
		is(s, "content", s.read(Scratch+`\second`), "new")
		_, err := s.Files.Stat(s.ctx, file)
		s.fails(err, host.ErrNotExist)
	})
	t.Run("a rename moves a folder with what is in it", func(t *testing.T) {
		s := open(t)
		s.must(s.Tree.MakeDirectory(s.ctx, folder, host.AccessInherited))
		s.write(folder+`\file`, "x")
		s.must(s.Tree.Rename(s.ctx, folder, Scratch+`\moved`))
		is(s, "content", s.read(Scratch+`\moved\file`), "x")
	})
	t.Run("nothing cannot be renamed", func(t *testing.T) {
		s := open(t)
		s.fails(s.Tree.Rename(s.ctx, file, Scratch+`\second`), host.ErrNotExist)
	})
}

func testLinks(t *testing.T, open func(*testing.T) *suite) {
	const target, link = Scratch + `\target`, Scratch + `\link`

	t.Run("a link is followed when it is read, and described as itself", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Links, "symbolic links")
		s.write(target, "content")
		s.must(s.Tree.Symlink(s.ctx, target, link))
		is(s, "content", s.read(link), "content")
		info, err := s.Files.Stat(s.ctx, link)
		s.must(err)
		is(s, "target", info.LinkTarget, target)
	})
	t.Run("a link to a folder is part of a path", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Links, "symbolic links")
		s.must(s.Tree.MakeDirectory(s.ctx, target, host.AccessInherited))
		s.must(s.Tree.Symlink(s.ctx, target, link))
		s.write(link+`\file`, "x")
		is(s, "content", s.read(target+`\file`), "x")
	})
	t.Run("a link is replaced, and removed without its target", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Links, "symbolic links")
		s.write(target, "one")
		s.write(target+"2", "two")
		s.must(s.Tree.Symlink(s.ctx, target, link))
		s.must(s.Tree.Symlink(s.ctx, target+"2", link))
		is(s, "content", s.read(link), "two")
		s.must(s.Files.Remove(s.ctx, link))
		is(s, "content", s.read(target+"2"), "two")
	})
	t.Run("a write to a link replaces the link", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Links, "symbolic links")
		s.write(target, "target")
		s.must(s.Tree.Symlink(s.ctx, target, link))
		s.write(link, "file")
		is(s, "target", s.read(target), "target")
	})
	t.Run("a link that leads nowhere cannot be read", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Links, "symbolic links")
		s.must(s.Tree.Symlink(s.ctx, target, link))
		_, err := s.Files.Open(s.ctx, link)
		s.fails(err, host.ErrNotExist)
	})
}
