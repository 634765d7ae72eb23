package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	testDirectory = Scratch + `\folder`
	file          = Scratch + `\file`
	second        = Scratch + `\second`
	target        = Scratch + `\target`
	link          = Scratch + `\link`
)

func directoryBehaviors() []Behavior {
	return []Behavior{
		{"Tree.MakeDirectory", "a folder needs the one above it", func(s *suite) {
			s.requireError(s.Tree.MakeDirectory(s.ctx, testDirectory+`\below`, host.AccessInherited), host.ErrNotExist)
		}},
		{"Tree.MakeDirectory", "making a folder that is there keeps what is in it", func(s *suite) {
			s.makeDirectory(testDirectory)
			s.write(testDirectory+`\file`, "x")
			s.makeDirectory(strings.ToUpper(testDirectory))
			expectEqual(s, "content", s.read(testDirectory+`\file`), "x")
			expectEqual(s, "name", s.statPath(testDirectory).Name, "folder")
		}},
		{"Tree.MakeDirectory", "a folder cannot be made where a file is", func(s *suite) {
			s.write(file, "x")
			s.requireError(s.Tree.MakeDirectory(s.ctx, file, host.AccessInherited), host.ErrExist)
			expectEqual(s, "content", s.read(file), "x")
		}},
		{"Tree.MakeDirectory", "a folder for administrators is for nobody else", func(s *suite) {
			s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, host.AccessAdministrators))
			expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessAdministrators)
		}},
		{"Tree.MakeDirectory", "a folder that all may read is changed by administrators only", func(s *suite) {
			s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, host.AccessReadable))
			expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessReadable)
			expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, false)
			s.makeDirectory(testDirectory + `\below`)
			expectEqual(s, "access below", s.statPath(testDirectory+`\below`).Access, host.AccessInherited)
			for _, access := range []host.Access{host.AccessInherited, host.AccessReadable, host.AccessAdministrators,
				host.AccessReadable} {
				s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
				expectEqual(s, "access", s.statPath(testDirectory).Access, access)
			}
		}},
		{"Tree.MakeDirectory", "a folder of a user's is foreign until it is closed", func(s *suite) {
			s.makeDirectory(testDirectory)
			expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, false)
			if s.machine.SetUserOwner == nil {
				s.skipBehavior("the suite cannot give a folder to a user here")
			}
			for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
				s.requireNoError(s.machine.SetUserOwner(s.ctx, testDirectory))
				expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, true)
				expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessInherited)
				s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
				expectEqual(s, "foreign once it is closed", s.statPath(testDirectory).Foreign, false)
				expectEqual(s, "access", s.statPath(testDirectory).Access, access)
			}
		}},
		{"Tree.MakeDirectory", "a folder that everyone may change, for lack of an access list, is foreign until it is closed", closeOpenDirectory},
		{"Tree.MakeDirectory", "making a folder that is there sets who may use it, both ways", func(s *suite) {
			s.makeDirectory(testDirectory)
			s.write(testDirectory+`\file`, "x")
			for _, access := range []host.Access{host.AccessInherited, host.AccessAdministrators, host.AccessInherited} {
				s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
				expectEqual(s, "access", s.statPath(testDirectory).Access, access)
			}
			expectEqual(s, "content", s.read(testDirectory+`\file`), "x")
		}},
	}
}

func closeOpenDirectory(s *suite) {
	s.makeDirectory(testDirectory)
	if s.machine.OpenToAll == nil {
		s.skipBehavior("the suite cannot open a folder to everyone here")
	}
	for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
		s.requireNoError(s.machine.OpenToAll(s.ctx, testDirectory))
		expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, true)
		expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessInherited)
		s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
		expectEqual(s, "foreign once it is closed", s.statPath(testDirectory).Foreign, false)
		expectEqual(s, "access", s.statPath(testDirectory).Access, access)
	}
}

func renameBehaviors() []Behavior {
	return []Behavior{
		{"Tree.Rename", "a rename moves a file onto another", func(s *suite) {
			s.write(file, "new")
			s.write(second, "old")
			s.requireNoError(s.Tree.Rename(s.ctx, file, second))
			expectEqual(s, "content", s.read(second), "new")
			_, err := s.Files.Stat(s.ctx, file)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Tree.Rename", "a rename moves a folder with what is in it", func(s *suite) {
			s.makeDirectory(testDirectory)
			s.write(testDirectory+`\file`, "x")
			s.requireNoError(s.Tree.Rename(s.ctx, testDirectory, Scratch+`\moved`))
			expectEqual(s, "content", s.read(Scratch+`\moved\file`), "x")
		}},
		{"Tree.Rename", "a rename changes the case of a name", func(s *suite) {
			s.write(file, "x")
			s.requireNoError(s.Tree.Rename(s.ctx, file, Scratch+`\FILE`))
			expectEqual(s, "name", s.statPath(file).Name, "FILE")
			expectEqual(s, "content", s.read(file), "x")
		}},
		{"Tree.Rename", "nothing cannot be renamed", func(s *suite) {
			s.requireError(s.Tree.Rename(s.ctx, file, second), host.ErrNotExist)
		}},
		{"Tree.Rename", "a folder that is there is not replaced", func(s *suite) {
			s.write(file, "x")
			s.makeDirectory(testDirectory)
			s.expectAnyError("rename", s.Tree.Rename(s.ctx, file, testDirectory))
			expectEqual(s, "content", s.read(file), "x")
			expectEqual(s, "directory", s.statPath(testDirectory).Directory, true)
		}},
	}
}

// createSymlink creates or replaces the suite's link. At the end the link is removed before its directory.
func (s *suite) createSymlink(target string) {
	s.atEnd(func(ctx context.Context) error { return s.Files.Remove(ctx, link) })
	s.requireNoError(s.Tree.Symlink(s.ctx, target, link))
}

func linkBehaviors() []Behavior {
	return []Behavior{
		{"Tree.Symlink", "a link is followed when it is read, and described as itself", func(s *suite) {
			s.write(target, "content")
			s.createSymlink(target)
			expectEqual(s, "content", s.read(link), "content")
			expectEqual(s, "target", s.statPath(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link to a folder is part of a path", func(s *suite) {
			s.makeDirectory(target)
			s.createSymlink(target)
			s.write(link+`\file`, "x")
			expectEqual(s, "content", s.read(target+`\file`), "x")
			expectEqual(s, "target", s.statPath(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link is replaced, and removed without its target", func(s *suite) {
			s.write(target, "one")
			s.write(target+"2", "two")
			s.createSymlink(target)
			s.createSymlink(target + "2")
			expectEqual(s, "content", s.read(link), "two")
			s.requireNoError(s.Files.Remove(s.ctx, link))
			expectEqual(s, "content", s.read(target+"2"), "two")
		}},
		{"Tree.Symlink", "a link to a folder is replaced, and removed without what is in the folder", func(s *suite) {
			s.makeDirectory(target)
			s.write(target+`\file`, "one")
			s.makeDirectory(testDirectory)
			s.createSymlink(target)
			s.createSymlink(testDirectory)
			expectEqual(s, "target", s.statPath(link).LinkTarget, testDirectory)
			s.createSymlink(target)
			s.requireNoError(s.Files.Remove(s.ctx, link))
			expectEqual(s, "content", s.read(target+`\file`), "one")
		}},
		{"Files.Write", "a write to a link replaces the link", func(s *suite) {
			s.write(target, "target")
			s.createSymlink(target)
			s.write(link, "file")
			expectEqual(s, "target", s.read(target), "target")
			expectEqual(s, "link", s.read(link), "file")
		}},
		{"Files.Open", "a link that leads nowhere cannot be read", func(s *suite) {
			s.createSymlink(target)
			_, err := s.Files.Open(s.ctx, link)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing a folder does not follow the links in it", func(s *suite) {
			s.makeDirectory(target)
			s.write(target+`\file`, "x")
			s.makeDirectory(testDirectory)
			s.requireNoError(s.Tree.Symlink(s.ctx, target, testDirectory+`\link`))
			s.requireNoError(s.Files.Remove(s.ctx, testDirectory))
			expectEqual(s, "content", s.read(target+`\file`), "x")
		}},
	}
}
