package hosttest

import (
	"context"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	log        = Scratch + `\program.log`
	rotatedLog = Scratch + `\program-1.log`
)

// openLog opens a log like a program, until the end of the behavior, and returns a function that writes a line.
func (s *suite) openLog(path string) (line func(string)) {
	opened, err := s.machine.OpenLog(path)
	s.requireNoError(err)
	s.atEnd(func(context.Context) error { return opened.Close() })
	return func(text string) {
		_, err := io.WriteString(opened, text)
		s.requireNoError(err)
	}
}

func logsBehaviors() []Behavior {
	return []Behavior{
		{"Logs.Rotate", "the copy has all lines, and the program continues at the start of the truncated log",
			func(s *suite) {
				line := s.openLog(log)
				for _, lines := range []string{strings.Repeat("a line of the log\n", 50_000), "one more\n"} {
					line(lines)
					s.requireNoError(s.Logs.Rotate(s.ctx, log, rotatedLog))
					expectEqual(s, "the copy is complete", s.read(rotatedLog) == lines, true)
					expectEqual(s, "size of the log", s.statPath(log).Size, 0)
					s.requireNoError(s.Files.Remove(s.ctx, rotatedLog))
				}
				line("after it\n")
				expectEqual(s, "the log", s.read(log), "after it\n")
			}},
		{"Logs.Rotate", "a log without a writer can be rotated, even if empty", func(s *suite) {
			s.write(log, "lines\n")
			s.requireNoError(s.Logs.Rotate(s.ctx, log, rotatedLog))
			expectEqual(s, "the copy", s.read(rotatedLog), "lines\n")
			s.requireNoError(s.Logs.Rotate(s.ctx, log, Scratch+`\program-2.log`))
			expectEqual(s, "the second copy", s.read(Scratch+`\program-2.log`), "")
		}},
		{"Logs.Rotate", "the copy has the access of the log", func(s *suite) {
			s.requireNoError(s.Files.Write(s.ctx, log, strings.NewReader("lines\n"), host.WriteOptions{Access: host.AccessAdministrators}))
			s.requireNoError(s.Logs.Rotate(s.ctx, log, rotatedLog))
			expectEqual(s, "access", s.statPath(rotatedLog).Access, host.AccessAdministrators)
			expectEqual(s, "access of the log", s.statPath(log).Access, host.AccessAdministrators)
		}},
		{"Logs.Rotate", "an existing file at the path of the copy is kept, and so is the log", func(s *suite) {
			s.write(log, "lines\n")
			s.write(rotatedLog, "earlier\n")
			s.requireError(s.Logs.Rotate(s.ctx, log, rotatedLog), host.ErrExist)
			expectEqual(s, "the log", s.read(log), "lines\n")
			expectEqual(s, "the file", s.read(rotatedLog), "earlier\n")
		}},
		{"Logs.Rotate", "a missing log, or a missing directory for the copy, is an error and changes nothing", func(s *suite) {
			s.requireError(s.Logs.Rotate(s.ctx, log, rotatedLog), host.ErrNotExist)
			s.write(log, "lines\n")
			s.requireError(s.Logs.Rotate(s.ctx, log, testDirectory+`\program.log`), host.ErrNotExist)
			expectEqual(s, "the log", s.read(log), "lines\n")
			_, err := s.Files.Stat(s.ctx, rotatedLog)
			s.requireError(err, host.ErrNotExist)
		}},
	}
}
