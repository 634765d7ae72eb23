package hosttest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing/iotest"

	"github.com/windows-machine-config/wmco/internal/host"
)

func writeBehaviors() []Behavior {
	return []Behavior{
		{"Files.Write", "a write replaces the complete content", func(s *suite) {
			s.write(configFile, "a long content")
			s.write(configFile, "short")
			expectEqual(s, "content", s.read(configFile), "short")
		}},
		{"Files.Write", "the content of a file of several megabytes is preserved", writeMegabytes},
		{"Files.Write", "a later write does not change content that was read before", func(s *suite) {
			s.write(configFile, "old")
			data := s.read(configFile)
			s.write(configFile, "new")
			expectEqual(s, "content", data, "old")
			expectEqual(s, "content afterwards", s.read(configFile), "new")
		}},
		{"Files.Write", "an interrupted write keeps the old content and leaves no other file", func(s *suite) {
			s.write(configFile, "old")
			cut := errors.New("cut")
			content := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(cut))
			s.requireError(s.Files.Write(s.ctx, configFile, content, host.WriteOptions{}), cut)
			expectEqual(s, "content", s.read(configFile), "old")
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.requireNoError(err)
			expectEqual(s, "entries", len(entries), 1)
		}},
		{"Files.Write", "an exclusive write does not change an existing file", func(s *suite) {
			exclusive := host.WriteOptions{Exclusive: true}
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("mine"), exclusive))
			s.requireError(s.Files.Write(s.ctx, configFile, strings.NewReader("theirs"), exclusive), host.ErrExist)
			expectEqual(s, "content", s.read(configFile), "mine")
		}},
		{"Files.Write", "a write into a missing directory fails", func(s *suite) {
			err := s.Files.Write(s.ctx, Scratch+`\none\file`, strings.NewReader("x"), host.WriteOptions{})
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Write", "a file does not replace a directory", func(s *suite) {
			s.makeDirectory(Scratch + `\sub`)
			s.expectAnyError("write", s.Files.Write(s.ctx, Scratch+`\sub`, strings.NewReader("x"), host.WriteOptions{}))
			expectEqual(s, "directory", s.statPath(Scratch+`\sub`).Directory, true)
		}},
		{"Files.Write", "an appending write creates the file, and later appends to it", appendTwice},
		{"Files.Write", "an appending write follows a symbolic link", func(s *suite) {
			s.write(configFile, "present")
			s.requireNoError(s.Tree.Symlink(s.ctx, configFile, Scratch+`\link`))
			s.requireNoError(s.Files.Write(s.ctx, Scratch+`\link`, strings.NewReader(", added"), host.WriteOptions{Append: true}))
			expectEqual(s, "content", s.read(configFile), "present, added")
			expectEqual(s, "target", s.statPath(Scratch+`\link`).LinkTarget, configFile)
		}},
		{"Files.Write", "invalid names are rejected", func(s *suite) {
			for _, name := range []string{`a<b`, `a"b`, `a|b`, `a?b`, `a*b`} {
				err := s.Files.Write(s.ctx, Scratch+`\`+name, strings.NewReader("x"), host.WriteOptions{})
				s.expectAnyError("a file named "+name, err)
			}
		}},
		{"Files.Write", "a path may be longer than 260 characters", func(s *suite) {
			folder := Scratch + `\` + strings.Repeat("a", 150)
			s.makeDirectory(folder)
			path := folder + `\` + strings.Repeat("b", 150)
			s.write(path, "deep")
			expectEqual(s, "content", s.read(path), "deep")
		}},
	}
}

// writeMegabytes writes more data than any buffer holds, including bytes that text mode would corrupt.
func writeMegabytes(s *suite) {
	var content bytes.Buffer
	block := sha256.Sum256([]byte("block"))
	for content.Len() < 4<<20 {
		content.Write(block[:])
		content.WriteString("\r\n\n\x1a\x00")
		block = sha256.Sum256(block[:])
	}
	want := content.String()
	s.requireNoError(s.Files.Write(s.ctx, configFile, &content, host.WriteOptions{}))
	expectEqual(s, "size", s.statPath(configFile).Size, int64(len(want)))
	expectEqual(s, "same content", s.read(configFile) == want, true)
}

func appendTwice(s *suite) {
	appending := host.WriteOptions{Append: true}
	for _, line := range []string{"one\r\n", "two\r\n"} {
		s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader(line), appending))
	}
	expectEqual(s, "content", s.read(configFile), "one\r\ntwo\r\n")
	err := s.Files.Write(s.ctx, Scratch+`\none\file`, strings.NewReader("x"), appending)
	s.requireError(err, host.ErrNotExist)
}

func accessBehaviors() []Behavior {
	onlyAdministrators := host.WriteOptions{Access: host.AccessAdministrators}
	return []Behavior{
		{"Files.Write", "a file can be restricted to administrators", func(s *suite) {
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			expectEqual(s, "access", s.statPath(configFile).Access, host.AccessAdministrators)
			expectEqual(s, "content", s.read(configFile), "key")
		}},
		{"Files.Write", "a file inherits the access of its directory unless specified", func(s *suite) {
			s.write(configFile, "no secret")
			expectEqual(s, "access", s.statPath(configFile).Access, host.AccessInherited)
		}},
		{"Files.Write", "a write replaces the access of a file", func(s *suite) {
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			s.write(configFile, "no secret")
			expectEqual(s, "access", s.statPath(configFile).Access, host.AccessInherited)
		}},
		{"Files.Write", "an appending write keeps the access of an existing file", func(s *suite) {
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("one"), onlyAdministrators))
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("two"), host.WriteOptions{Append: true}))
			expectEqual(s, "access", s.statPath(configFile).Access, host.AccessAdministrators)
			expectEqual(s, "content", s.read(configFile), "onetwo")
		}},
		{"Files.ReadDir", "a directory listing contains the access of files", func(s *suite) {
			s.requireNoError(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.requireNoError(err)
			expectEqual(s, "entries", len(entries), 1)
			expectEqual(s, "access", entries[0].Access, host.AccessAdministrators)
		}},
	}
}

// program is a copy of the idle program.
const program = Scratch + `\program.exe`

func inUseBehaviors() []Behavior {
	return []Behavior{
		{"Files.Write", "a running executable cannot be replaced", func(s *suite) {
			s.runCopy()
			s.requireError(s.Files.Write(s.ctx, program, strings.NewReader("new"), host.WriteOptions{}), host.ErrInUse)
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			s.write(program, "new")
		}},
		{"Files.Remove", "neither a running executable nor its directory can be removed", func(s *suite) {
			s.runCopy()
			s.requireError(s.Files.Remove(s.ctx, program), host.ErrInUse)
			s.requireError(s.Files.Remove(s.ctx, Scratch), host.ErrInUse)
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceRunning)
		}},
		{"Files.Remove", "an executable can be removed after its process has ended", func(s *suite) {
			s.runCopy()
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			s.requireNoError(s.Files.Remove(s.ctx, program))
		}},
		{"Tree.Rename", "a rename cannot replace a running executable", func(s *suite) {
			s.runCopy()
			s.write(Scratch+`\new.exe`, "new")
			s.requireError(s.Tree.Rename(s.ctx, Scratch+`\new.exe`, program), host.ErrInUse)
			expectEqual(s, "the other", s.read(Scratch+`\new.exe`), "new")
		}},
		{"Tree.Rename", "a running executable can be renamed, and another file can take its name", func(s *suite) {
			s.runCopy()
			s.requireNoError(s.Tree.Rename(s.ctx, program, program+".old"))
			s.write(program, "new")
			s.requireError(s.Files.Remove(s.ctx, program+".old"), host.ErrInUse)
			expectEqual(s, "state", s.queryService(serviceOne).State, host.ServiceRunning)
		}},
	}
}

// runCopy runs a copy of the idle program as the first service.
func (s *suite) runCopy() {
	words := s.requireProgram(s.machine.Programs.Idle)
	s.write(program, s.read(words[0]))
	config := s.idleServiceConfig(serviceOne)
	config.CommandLine = host.CommandLine(append([]string{program}, words[1:]...)...)
	s.requireNoError(s.Services.Configure(s.ctx, config))
	s.requireNoError(s.Services.Start(s.ctx, serviceOne))
}
