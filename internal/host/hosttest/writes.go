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
		{"Files.Write", "a write replaces the whole content", func(s *suite) {
			s.write(configFile, "a long content")
			s.write(configFile, "short")
			is(s, "content", s.read(configFile), "short")
		}},
		{"Files.Write", "a file of some megabytes is what was written", writeMegabytes},
		{"Files.Write", "what a reader has read is not changed by a later write", func(s *suite) {
			s.write(configFile, "old")
			data := s.read(configFile)
			s.write(configFile, "new")
			is(s, "content", data, "old")
			is(s, "content afterwards", s.read(configFile), "new")
		}},
		{"Files.Write", "a write that is cut in the middle leaves the old content and nothing else", func(s *suite) {
			s.write(configFile, "old")
			cut := errors.New("cut")
			content := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(cut))
			s.fails(s.Files.Write(s.ctx, configFile, content, host.WriteOptions{}), cut)
			is(s, "content", s.read(configFile), "old")
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.must(err)
			is(s, "entries", len(entries), 1)
		}},
		{"Files.Write", "an exclusive write does not touch a file that is there", func(s *suite) {
			exclusive := host.WriteOptions{Exclusive: true}
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("mine"), exclusive))
			s.fails(s.Files.Write(s.ctx, configFile, strings.NewReader("theirs"), exclusive), host.ErrExist)
			is(s, "content", s.read(configFile), "mine")
		}},
		{"Files.Write", "a write into a folder that is not there fails", func(s *suite) {
			err := s.Files.Write(s.ctx, Scratch+`\none\file`, strings.NewReader("x"), host.WriteOptions{})
			s.fails(err, host.ErrNotExist)
		}},
		{"Files.Write", "a folder is not replaced by a file", func(s *suite) {
			s.mkdir(Scratch + `\sub`)
			s.refused("write", s.Files.Write(s.ctx, Scratch+`\sub`, strings.NewReader("x"), host.WriteOptions{}))
			is(s, "directory", s.stat(Scratch+`\sub`).Directory, true)
		}},
		{"Files.Write", "an appending write makes the file, then adds to its end", appendTwice},
		{"Files.Write", "an appending write follows a symbolic link", func(s *suite) {
			s.write(configFile, "present")
			s.must(s.Tree.Symlink(s.ctx, configFile, Scratch+`\link`))
			s.must(s.Files.Write(s.ctx, Scratch+`\link`, strings.NewReader(", added"), host.WriteOptions{Append: true}))
			is(s, "content", s.read(configFile), "present, added")
			is(s, "target", s.stat(Scratch+`\link`).LinkTarget, configFile)
		}},
		{"Files.Write", "names that Windows does not allow are refused", func(s *suite) {
			for _, name := range []string{`a<b`, `a"b`, `a|b`, `a?b`, `a*b`} {
				err := s.Files.Write(s.ctx, Scratch+`\`+name, strings.NewReader("x"), host.WriteOptions{})
				s.refused("a file named "+name, err)
			}
		}},
		{"Files.Write", "a path may be longer than 260 characters", func(s *suite) {
			folder := Scratch + `\` + strings.Repeat("a", 150)
			s.mkdir(folder)
			path := folder + `\` + strings.Repeat("b", 150)
			s.write(path, "deep")
			is(s, "content", s.read(path), "deep")
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
	s.must(s.Files.Write(s.ctx, configFile, &content, host.WriteOptions{}))
	is(s, "size", s.stat(configFile).Size, int64(len(want)))
	is(s, "same content", s.read(configFile) == want, true)
}

func appendTwice(s *suite) {
	appending := host.WriteOptions{Append: true}
	for _, line := range []string{"one\r\n", "two\r\n"} {
		s.must(s.Files.Write(s.ctx, configFile, strings.NewReader(line), appending))
	}
	is(s, "content", s.read(configFile), "one\r\ntwo\r\n")
	err := s.Files.Write(s.ctx, Scratch+`\none\file`, strings.NewReader("x"), appending)
	s.fails(err, host.ErrNotExist)
}

func accessBehaviors() []Behavior {
	onlyAdministrators := host.WriteOptions{Access: host.AccessAdministrators}
	return []Behavior{
		{"Files.Write", "a file for administrators is for nobody else", func(s *suite) {
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			is(s, "access", s.stat(configFile).Access, host.AccessAdministrators)
			is(s, "content", s.read(configFile), "key")
		}},
		{"Files.Write", "a file takes the access of the folder above unless another is given", func(s *suite) {
			s.write(configFile, "no secret")
			is(s, "access", s.stat(configFile).Access, host.AccessInherited)
		}},
		{"Files.Write", "a write sets the access anew", func(s *suite) {
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			s.write(configFile, "no secret")
			is(s, "access", s.stat(configFile).Access, host.AccessInherited)
		}},
		{"Files.Write", "an appending write leaves the access of a file that is there", func(s *suite) {
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("one"), onlyAdministrators))
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("two"), host.WriteOptions{Append: true}))
			is(s, "access", s.stat(configFile).Access, host.AccessAdministrators)
			is(s, "content", s.read(configFile), "onetwo")
		}},
		{"Files.ReadDir", "a listed file has its access", func(s *suite) {
			s.must(s.Files.Write(s.ctx, configFile, strings.NewReader("key"), onlyAdministrators))
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.must(err)
			is(s, "entries", len(entries), 1)
			is(s, "access", entries[0].Access, host.AccessAdministrators)
		}},
	}
}

// program is a copy of the idle program.
const program = Scratch + `\program.exe`

func inUseBehaviors() []Behavior {
	return []Behavior{
		{"Files.Write", "a running executable is not replaced", func(s *suite) {
			s.runCopy()
			s.fails(s.Files.Write(s.ctx, program, strings.NewReader("new"), host.WriteOptions{}), host.ErrInUse)
			s.must(s.Services.Stop(s.ctx, serviceOne))
			s.write(program, "new")
		}},
		{"Files.Remove", "a running executable is not removed, nor the folder that it is in", func(s *suite) {
			s.runCopy()
			s.fails(s.Files.Remove(s.ctx, program), host.ErrInUse)
			s.fails(s.Files.Remove(s.ctx, Scratch), host.ErrInUse)
			is(s, "state", s.service(serviceOne).State, host.ServiceRunning)
		}},
		{"Files.Remove", "a stopped executable is free", func(s *suite) {
			s.runCopy()
			s.must(s.Services.Stop(s.ctx, serviceOne))
			s.must(s.Files.Remove(s.ctx, program))
		}},
		{"Tree.Rename", "a running executable is not replaced by a rename", func(s *suite) {
			s.runCopy()
			s.write(Scratch+`\new.exe`, "new")
			s.fails(s.Tree.Rename(s.ctx, Scratch+`\new.exe`, program), host.ErrInUse)
			is(s, "the other", s.read(Scratch+`\new.exe`), "new")
		}},
		{"Tree.Rename", "a running executable may be renamed, which makes room for another", func(s *suite) {
			s.runCopy()
			s.must(s.Tree.Rename(s.ctx, program, program+".old"))
			s.write(program, "new")
			s.fails(s.Files.Remove(s.ctx, program+".old"), host.ErrInUse)
			is(s, "state", s.service(serviceOne).State, host.ServiceRunning)
		}},
	}
}

// runCopy runs a copy of the idle program as the first service.
func (s *suite) runCopy() {
	words := s.program(s.machine.Programs.Idle)
	s.write(program, s.read(words[0]))
	config := s.idle(serviceOne)
	config.CommandLine = host.CommandLine(append([]string{program}, words[1:]...)...)
	s.must(s.Services.Configure(s.ctx, config))
	s.must(s.Services.Start(s.ctx, serviceOne))
}
