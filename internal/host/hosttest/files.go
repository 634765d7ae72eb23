package hosttest

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

const configFile = Scratch + `\Config.json`

func fileBehaviors() []Behavior {
	return []Behavior{
		{"Files.Open", "a written file can be read, and its path is case-insensitive", func(s *suite) {
			s.write(configFile, "one")
			expectEqual(s, "content", s.read(strings.ToUpper(configFile)), "one")
		}},
		{"Files.Open", "reading a missing file fails", func(s *suite) {
			_, err := s.Files.Open(s.ctx, configFile)
			s.requireError(err, host.ErrNotExist)
			_, err = s.Files.Open(s.ctx, Scratch+`\none\file`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Stat", "the description of a file preserves the case of its name", func(s *suite) {
			before := time.Now().Add(-time.Minute)
			s.write(configFile, "one")
			info := s.statPath(strings.ToLower(configFile))
			expectEqual(s, "name", info.Name, "Config.json")
			expectEqual(s, "size", info.Size, 3)
			expectEqual(s, "directory", info.Directory, false)
			expectEqual(s, "link target", info.LinkTarget, "")
			if info.Modified.Before(before) || info.Modified.After(time.Now().Add(time.Minute)) {
				s.Errorf("modified %s, current time %s", info.Modified, time.Now())
			}
		}},
		{"Files.Stat", "a directory is described as a directory", func(s *suite) {
			expectEqual(s, "directory", s.statPath(Scratch).Directory, true)
		}},
		{"Files.Stat", "describing a missing file fails", func(s *suite) {
			_, err := s.Files.Stat(s.ctx, configFile)
			s.requireError(err, host.ErrNotExist)
			_, err = s.Files.Stat(s.ctx, Scratch+`\none\file`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.ReadDir", "a directory is listed in the order of names", listDirectory},
		{"Files.ReadDir", "an empty directory has no entries", func(s *suite) {
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.requireNoError(err)
			expectEqual(s, "entries", len(entries), 0)
		}},
		{"Files.ReadDir", "listing a missing directory fails", func(s *suite) {
			_, err := s.Files.ReadDir(s.ctx, Scratch+`\none`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing deletes a directory with its content, and a missing path is no error", func(s *suite) {
			s.makeDirectory(Scratch + `\sub`)
			s.write(Scratch+`\sub\file`, "x")
			for range 2 {
				s.requireNoError(s.Files.Remove(s.ctx, Scratch+`\sub`))
			}
			_, err := s.Files.Stat(s.ctx, Scratch+`\sub`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing a file keeps the other files of the directory", func(s *suite) {
			s.write(configFile, "one")
			s.write(configFile+".old", "two")
			s.requireNoError(s.Files.Remove(s.ctx, configFile))
			expectEqual(s, "neighbor", s.read(configFile+".old"), "two")
		}},
	}
}

func listDirectory(s *suite) {
	s.write(Scratch+`\b`, "12")
	s.write(Scratch+`\a`, "")
	s.makeDirectory(Scratch + `\c`)
	entries, err := s.Files.ReadDir(s.ctx, Scratch)
	s.requireNoError(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name)
		expectEqual(s, "path", strings.ToLower(entry.Path), strings.ToLower(Scratch+`\`+entry.Name))
	}
	if got := strings.Join(names, " "); got != "a b c" {
		s.Fatalf("names: %s", got)
	}
	expectEqual(s, "size of b", entries[1].Size, 2)
	expectEqual(s, "b is a directory", entries[1].Directory, false)
	expectEqual(s, "c is a directory", entries[2].Directory, true)
}
