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
		{"Tree.MakeDirectory", "creating a directory without its parent fails", func(s *suite) {
			s.requireError(s.Tree.MakeDirectory(s.ctx, testDirectory+`\below`, host.AccessInherited), host.ErrNotExist)
		}},
		{"Tree.MakeDirectory", "creating an existing directory keeps its content", func(s *suite) {
			s.makeDirectory(testDirectory)
			s.write(testDirectory+`\file`, "x")
			s.makeDirectory(strings.ToUpper(testDirectory))
			expectEqual(s, "content", s.read(testDirectory+`\file`), "x")
			expectEqual(s, "name", s.statPath(testDirectory).Name, "folder")
		}},
		{"Tree.MakeDirectory", "creating a directory at the path of a file fails", func(s *suite) {
			s.write(file, "x")
			s.requireError(s.Tree.MakeDirectory(s.ctx, file, host.AccessInherited), host.ErrExist)
			expectEqual(s, "content", s.read(file), "x")
		}},
		{"Tree.MakeDirectory", "a directory can be restricted to administrators", func(s *suite) {
			s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, host.AccessAdministrators))
			expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessAdministrators)
		}},
		{"Tree.MakeDirectory", "a directory can be readable for all users and writable for administrators only", func(s *suite) {
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
		{"Tree.MakeDirectory", "a directory owned by a user is foreign until it is restricted", func(s *suite) {
			s.makeDirectory(testDirectory)
			expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, false)
			if s.machine.SetUserOwner == nil {
				s.skipBehavior("the suite cannot set a user as the owner of a directory in this environment")
			}
			for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
				s.requireNoError(s.machine.SetUserOwner(s.ctx, testDirectory))
				expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, true)
				expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessInherited)
				s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
				expectEqual(s, "foreign after the restriction", s.statPath(testDirectory).Foreign, false)
				expectEqual(s, "access", s.statPath(testDirectory).Access, access)
			}
		}},
		{"Tree.MakeDirectory", "a directory without an access list is foreign until it is restricted", closeOpenDirectory},
		{"Tree.MakeDirectory", "creating an existing directory sets its access", func(s *suite) {
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
		s.skipBehavior("the suite cannot grant everyone access to a directory in this environment")
	}
	for _, access := range []host.Access{host.AccessReadable, host.AccessAdministrators} {
		s.requireNoError(s.machine.OpenToAll(s.ctx, testDirectory))
		expectEqual(s, "foreign", s.statPath(testDirectory).Foreign, true)
		expectEqual(s, "access", s.statPath(testDirectory).Access, host.AccessInherited)
		s.requireNoError(s.Tree.MakeDirectory(s.ctx, testDirectory, access))
		expectEqual(s, "foreign after the restriction", s.statPath(testDirectory).Foreign, false)
		expectEqual(s, "access", s.statPath(testDirectory).Access, access)
	}
}

func renameBehaviors() []Behavior {
	return []Behavior{
		{"Tree.Rename", "a rename replaces an existing file", func(s *suite) {
			s.write(file, "new")
			s.write(second, "old")
			s.requireNoError(s.Tree.Rename(s.ctx, file, second))
			expectEqual(s, "content", s.read(second), "new")
			_, err := s.Files.Stat(s.ctx, file)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Tree.Rename", "a rename moves a directory with its content", func(s *suite) {
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
		{"Tree.Rename", "renaming a missing path fails", func(s *suite) {
			s.requireError(s.Tree.Rename(s.ctx, file, second), host.ErrNotExist)
		}},
		{"Tree.Rename", "a rename does not replace an existing directory", func(s *suite) {
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
		{"Tree.Symlink", "reading follows a link, and its description is that of the link", func(s *suite) {
			s.write(target, "content")
			s.createSymlink(target)
			expectEqual(s, "content", s.read(link), "content")
			expectEqual(s, "target", s.statPath(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link to a directory can be part of a path", func(s *suite) {
			s.makeDirectory(target)
			s.createSymlink(target)
			s.write(link+`\file`, "x")
			expectEqual(s, "content", s.read(target+`\file`), "x")
			expectEqual(s, "target", s.statPath(link).LinkTarget, target)
		}},
		{"Tree.Symlink", "a link can be replaced, and removed without its target", func(s *suite) {
			s.write(target, "one")
			s.write(target+"2", "two")
			s.createSymlink(target)
			s.createSymlink(target + "2")
			expectEqual(s, "content", s.read(link), "two")
			s.requireNoError(s.Files.Remove(s.ctx, link))
			expectEqual(s, "content", s.read(target+"2"), "two")
		}},
		{"Tree.Symlink", "a link to a directory can be replaced, and removed without the content of the directory", func(s *suite) {
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
		{"Files.Open", "reading a dangling link fails", func(s *suite) {
			s.createSymlink(target)
			_, err := s.Files.Open(s.ctx, link)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing a directory does not follow the links in it", func(s *suite) {
			s.makeDirectory(target)
			s.write(target+`\file`, "x")
			s.makeDirectory(testDirectory)
			s.requireNoError(s.Tree.Symlink(s.ctx, target, testDirectory+`\link`))
			s.requireNoError(s.Files.Remove(s.ctx, testDirectory))
			expectEqual(s, "content", s.read(target+`\file`), "x")
		}},
	}
}
