package hosttest

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

const configFile = Scratch + `\Config.json`

func fileBehaviors() []Behavior {
	return []Behavior{
		{"Files.Open", "what was written is read, whatever the case of the path", func(s *suite) {
			s.write(configFile, "one")
			expectEqual(s, "content", s.read(strings.ToUpper(configFile)), "one")
		}},
		{"Files.Open", "a file that is not there cannot be read", func(s *suite) {
			_, err := s.Files.Open(s.ctx, configFile)
			s.requireError(err, host.ErrNotExist)
			_, err = s.Files.Open(s.ctx, Scratch+`\none\file`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Stat", "a file is described with its name as it was written", func(s *suite) {
			before := time.Now().Add(-time.Minute)
			s.write(configFile, "one")
			info := s.statPath(strings.ToLower(configFile))
			expectEqual(s, "name", info.Name, "Config.json")
			expectEqual(s, "size", info.Size, 3)
			expectEqual(s, "directory", info.Directory, false)
			expectEqual(s, "link target", info.LinkTarget, "")
			if info.Modified.Before(before) || info.Modified.After(time.Now().Add(time.Minute)) {
				s.Errorf("modified %s, but it is %s", info.Modified, time.Now())
			}
		}},
		{"Files.Stat", "a folder is described as one", func(s *suite) {
			expectEqual(s, "directory", s.statPath(Scratch).Directory, true)
		}},
		{"Files.Stat", "what is not there has no description", func(s *suite) {
			_, err := s.Files.Stat(s.ctx, configFile)
			s.requireError(err, host.ErrNotExist)
			_, err = s.Files.Stat(s.ctx, Scratch+`\none\file`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.ReadDir", "a folder is listed by name", listDirectory},
		{"Files.ReadDir", "an empty folder has no entries", func(s *suite) {
			entries, err := s.Files.ReadDir(s.ctx, Scratch)
			s.requireNoError(err)
			expectEqual(s, "entries", len(entries), 0)
		}},
		{"Files.ReadDir", "a folder that is not there is not listed", func(s *suite) {
			_, err := s.Files.ReadDir(s.ctx, Scratch+`\none`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "removing takes a folder with all below, and nothing is no error", func(s *suite) {
			s.makeDirectory(Scratch + `\sub`)
			s.write(Scratch+`\sub\file`, "x")
			for range 2 {
				s.requireNoError(s.Files.Remove(s.ctx, Scratch+`\sub`))
			}
			_, err := s.Files.Stat(s.ctx, Scratch+`\sub`)
			s.requireError(err, host.ErrNotExist)
		}},
		{"Files.Remove", "a removed file leaves its neighbors", func(s *suite) {
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
	expectEqual(s, "b is a folder", entries[1].Directory, false)
	expectEqual(s, "c is a folder", entries[2].Directory, true)
}
