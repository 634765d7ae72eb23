package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	folder = Scratch + `\folder`
	file   = Scratch + `\file`
	second = Scratch + `\second`
	target = Scratch + `\target`
	link   = Scratch + `\link`
)

func directoryBehaviors() []Behavior {
	return []Behavior{
		{"Tree.MakeDirectory", "a folder needs the one above it", func(s *suite) {
			s.fails(s.Tree.MakeDirectory(s.ctx, folder+`\below`, host.AccessInherited), host.ErrNotExist)
		}},
		{"Tree.MakeDirectory", "making a folder that is there keeps what is in it", func(s *suite) {
			s.mkdir(folder)
			s.write(folder+`\file`, "x")
			s.mkdir(strings.ToUpper(folder))
			is(s, "content", s.read(folder+`\file`), "x")
			is(s, "name", s.stat(folder).Name, "folder")
		}},
		{"Tree.MakeDirectory", "a folder cannot be made where a file is", func(s *suite) {
			s.write(file, "x")
			s.fails(s.Tree.MakeDirectory(s.ctx, file, host.AccessInherited), host.ErrExist)
			is(s, "content", s.read(file), "x")
		}},
		{"Tree.MakeDirectory", "a folder for administrators is for nobody else", func(s *suite) {
			s.must(s.Tree.MakeDirectory(s.ctx, folder, host.AccessAdministrators))
			is(s, "access", s.stat(folder).Access, host.AccessAdministrators)
		}},
		{"Tree.MakeDirectory", "a folder that all may read is changed by administrators only", func(s *suite) {
			s.must(s.Tree.MakeDirectory(s.ctx, folder, host.AccessReadable))
			is(s, "access", s.stat(folder).Access, host.AccessReadable)
			is(s, "foreign", s.stat(folder).Foreign, false)
			s.mkdir(folder + `\below`)
			is(s, "access below", s.stat(folder+`\below`).Access, host.AccessInherited)
			for _, access := range []host.Access{host.AccessInherited, host.AccessReadable, host.AccessAdministrators,
				host.AccessReadable} {
				s.must(s.Tree.MakeDirectory(s.ctx, folder, access))
				is(s, "access", s.stat(folder).Access, access)
			}
		}},
		{"Tree.MakeDirectory", "a folder of a user's is foreign until it is closed", func(s *suite) {
			s.mkdir(folder)
			is(s, "foreign", s.stat(folder).Foreign, false)
			if s.machine.GiveToUser == nil {
				s.notHere("the suite cannot give a folder to a user here")
			}
			for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
				s.must(s.machine.GiveToUser(s.ctx, folder))
				is(s, "foreign", s.stat(folder).Foreign, true)
				is(s, "access", s.stat(folder).Access, host.AccessInherited)
				s.must(s.Tree.MakeDirectory(s.ctx, folder, access))
				is(s, "foreign once it is closed", s.stat(folder).Foreign, false)
				is(s, "access", s.stat(folder).Access, access)
			}
		}},
		{"Tree.MakeDirectory", "a folder that everyone may change, for lack of an access list, is foreign until it is closed", closeOpenDirectory},
		{"Tree.MakeDirectory", "making a folder that is there sets who may use it, both ways", func(s *suite) {
			s.mkdir(folder)
			s.write(folder+`\file`, "x")
			for _, access := range []host.Access{host.AccessInherited, host.AccessAdministrators, host.AccessInherited} {
				s.must(s.Tree.MakeDirectory(s.ctx, folder, access))
				is(s, "access", s.stat(folder).Access, access)
			}
			is(s, "content", s.read(folder+`\file`), "x")
		}},
	}
}

func closeOpenDirectory(s *suite) {
	s.mkdir(folder)
	if s.machine.OpenToAll == nil {
		s.notHere("the suite cannot open a folder to everyone here")
	}
	for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
		s.must(s.machine.OpenToAll(s.ctx, folder))
		is(s, "foreign", s.stat(folder).Foreign, true)
		is(s, "access", s.stat(folder).Access, host.AccessInherited)
		s.must(s.Tree.MakeDirectory(s.ctx, folder, access))
		is(s, "foreign once it is closed", s.stat(folder).Foreign, false)
		is(s, "access", s.stat(folder).Access, access)
	}
}

func renameBehaviors() []Behavior {
	return []Behavior{
		{"Tree.Rename", "a rename moves a file onto another", func(s *suite) {
			s.write(file, "new")
			s.write(second, "old")
			s.must(s.Tree.Rename(s.ctx, file, second))
			is(s, "content", s.read(second), "new")
			_, err := s.Files.Stat(s.ctx, file)
			s.fails(err, host.ErrNotExist)
		}},
		{"Tree.Rename", "a rename moves a folder with what is in it", func(s *suite) {
			s.mkdir(folder)
			s.write(folder+`\file`, "x")
			s.must(s.Tree.Rename(s.ctx, folder, Scratch+`\moved`))
			is(s, "content", s.read(Scratch+`\moved\file`), "x")
		}},
		{"Tree.Rename", "a rename changes the case of a name", func(s *suite) {
			s.write(file, "x")
			s.must(s.Tree.Rename(s.ctx, file, Scratch+`\FILE`))
			is(s, "name", s.stat(file).Name, "FILE")
			is(s, "content", s.read(file), "x")
		}},
		{"Tree.Rename", "nothing cannot be renamed", func(s *suite) {
			s.fails(s.Tree.Rename(s.ctx, file, second), host.ErrNotExist)
		}},
		{"Tree.Rename", "a folder that is there is not replaced", func(s *suite) {
			s.write(file, "x")
			s.mkdir(folder)
			s.refused("rename", s.Tree.Rename(s.ctx, file, folder))
			is(s, "content", s.read(file), "x")
			is(s, "directory", s.stat(folder).Directory, true)
		}},
	}
}

// symlink creates or replaces the suite's link. At the end the link is removed before its directory.
func (s *suite) symlink(target string) {
	s.atEnd(func(ctx context.Context) error { return s.Files.Remove(ctx, link) })
	s.must(s.Tree.Symlink(s.ctx, target, link))
}

func linkBehaviors() []Behavior {
	return []Behavior{
		{"Tree.Symlink", "a link is followed when it is read, and described as itself", func(s *suite) {
			s.write(target, "content")
			s.symlink(target)
			is(s, "content", s.read(link), "content")
			is(s, "target", s.stat(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link to a folder is part of a path", func(s *suite) {
			s.mkdir(target)
			s.symlink(target)
			s.write(link+`\file`, "x")
			is(s, "content", s.read(target+`\file`), "x")
			is(s, "target", s.stat(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link is replaced, and removed without its target", func(s *suite) {
			s.write(target, "one")
			s.write(target+"2", "two")
			s.symlink(target)
			s.symlink(target + "2")
			is(s, "content", s.read(link), "two")
			s.must(s.Files.Remove(s.ctx, link))
			is(s, "content", s.read(target+"2"), "two")
		}},
		{"Tree.Symlink", "a link to a folder is replaced, and removed without what is in the folder", func(s *suite) {
			s.mkdir(target)
			s.write(target+`\file`, "one")
			s.mkdir(folder)
			s.symlink(target)
			s.symlink(folder)
			is(s, "target", s.stat(link).LinkTarget, folder)
			s.symlink(target)
			s.must(s.Files.Remove(s.ctx, link))
			is(s, "content", s.read(target+`\file`), "one")
		}},
		{"Files.Write", "a write to a link replaces the link", func(s *suite) {
			s.write(target, "target")
			s.symlink(target)
			s.write(link, "file")
			is(s, "target", s.read(target), "target")
			is(s, "link", s.read(link), "file")
		}},
		{"Files.Open", "a link that leads nowhere cannot be read", func(s *suite) {
			s.symlink(target)
			_, err := s.Files.Open(s.ctx, link)
			s.fails(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing a folder does not follow the links in it", func(s *suite) {
			s.mkdir(target)
			s.write(target+`\file`, "x")
			s.mkdir(folder)
			s.must(s.Tree.Symlink(s.ctx, target, folder+`\link`))
			s.must(s.Files.Remove(s.ctx, folder))
			is(s, "content", s.read(target+`\file`), "x")
		}},
	}
}
