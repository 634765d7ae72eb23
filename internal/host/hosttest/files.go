package hosttest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windows-machine-config/wmco/internal/host"
)

func testFiles(t *testing.T, open func(*testing.T) *suite) {
	const file = Scratch + `\Config.json`

	t.Run("what was written is read, whatever the case of the path", func(t *testing.T) {
		s := open(t)
		s.write(file, "one")
		is(s, "content", s.read(strings.ToUpper(file)), "one")
		info, err := s.Files.Stat(s.ctx, strings.ToLower(file))
		s.must(err)
		is(s, "name", info.Name, "Config.json")
		is(s, "size", info.Size, 3)
		is(s, "directory", info.Directory, false)
	})
	t.Run("what is not there has no description and no content", func(t *testing.T) {
		s := open(t)
		_, err := s.Files.Stat(s.ctx, file)
		s.fails(err, host.ErrNotExist)
		_, err = s.Files.Open(s.ctx, file)
		s.fails(err, host.ErrNotExist)
		_, err = s.Files.ReadDir(s.ctx, Scratch+`\none`)
		s.fails(err, host.ErrNotExist)
	})
	t.Run("a folder is listed by name", func(t *testing.T) {
		s := open(t)
		s.write(Scratch+`\b`, "")
		s.write(Scratch+`\a`, "")
		s.must(s.Tree.MakeDirectory(s.ctx, Scratch+`\c`, host.AccessInherited))
		entries, err := s.Files.ReadDir(s.ctx, Scratch)
		s.must(err)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name)
			is(s, "path", strings.ToLower(entry.Path), strings.ToLower(Scratch+`\`+entry.Name))
		}
		is(s, "names", strings.Join(names, " "), "a b c")
		is(s, "c is a folder", entries[2].Directory, true)
	})
	t.Run("removing takes a folder with all below, and nothing is no error", func(t *testing.T) {
		s := open(t)
		s.must(s.Tree.MakeDirectory(s.ctx, Scratch+`\sub`, host.AccessInherited))
		s.write(Scratch+`\sub\file`, "x")
		s.must(s.Files.Remove(s.ctx, Scratch+`\sub`))
		s.must(s.Files.Remove(s.ctx, Scratch+`\sub`))
		_, err := s.Files.Stat(s.ctx, Scratch+`\sub`)
		s.fails(err, host.ErrNotExist)
	})
	t.Run("names that Windows does not allow are refused", func(t *testing.T) {
		s := open(t)
		for _, name := range []string{`a<b`, `a"b`, `a|b`, `a?b`, `a*b`} {
			err := s.Files.Write(s.ctx, Scratch+`\`+name, strings.NewReader("x"), host.WriteOptions{})
			if err == nil {
				t.Errorf("a file named %q was made", name)
			}
		}
	})
}

func testWrites(t *testing.T, open func(*testing.T) *suite) {
	const file = Scratch + `\Config.json`

	t.Run("a write replaces the whole content", func(t *testing.T) {
		s := open(t)
		s.write(file, "a long content")
		s.write(file, "short")
		is(s, "content", s.read(file), "short")
	})
	t.Run("a reader keeps the content that it opened", func(t *testing.T) {
		s := open(t)
		s.write(file, "old")
		reader, err := s.Files.Open(s.ctx, file)
		s.must(err)
		data, err := io.ReadAll(reader)
		s.must(errors.Join(err, reader.Close()))
		s.write(file, "new")
		is(s, "content", string(data), "old")
	})
	t.Run("a write that is cut in the middle leaves the old content", func(t *testing.T) {
		s := open(t)
		s.write(file, "old")
		cut := errors.New("cut")
		content := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(cut))
		s.fails(s.Files.Write(s.ctx, file, content, host.WriteOptions{}), cut)
		is(s, "content", s.read(file), "old")
		entries, err := s.Files.ReadDir(s.ctx, Scratch)
		s.must(err)
		is(s, "entries", len(entries), 1)
	})
	t.Run("an exclusive write does not touch a file that is there", func(t *testing.T) {
		s := open(t)
		exclusive := host.WriteOptions{Exclusive: true}
		s.must(s.Files.Write(s.ctx, file, strings.NewReader("mine"), exclusive))
		s.fails(s.Files.Write(s.ctx, file, strings.NewReader("theirs"), exclusive), host.ErrExist)
		is(s, "content", s.read(file), "mine")
	})
	t.Run("a write into a folder that is not there fails", func(t *testing.T) {
		s := open(t)
		err := s.Files.Write(s.ctx, Scratch+`\none\file`, strings.NewReader("x"), host.WriteOptions{})
		s.fails(err, host.ErrNotExist)
	})
	t.Run("a file keeps who may use it", func(t *testing.T) {
		s := open(t)
		s.needs(s.can.Access, "access control lists")
		s.must(s.Files.Write(s.ctx, file, strings.NewReader("key"), host.WriteOptions{Access: host.AccessAdministrators}))
		info, err := s.Files.Stat(s.ctx, file)
		s.must(err)
		is(s, "access", info.Access, host.AccessAdministrators)
		s.write(file, "no secret")
		info, err = s.Files.Stat(s.ctx, file)
		s.must(err)
		is(s, "access", info.Access, host.AccessInherited)
	})
}
