package standin

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// logBytes is the maximum size of a log.
const logBytes = 64 << 10

// logFile is a log on the drive of a simulated host.
type logFile struct {
	p    *fake.Process
	path string

	mu      sync.Mutex
	content []byte
}

// OpenLog creates a log or appends to an existing one. As for the real programs, the directory must exist.
func (m simulated) OpenLog(path string) (io.Writer, error) {
	p := m.p
	l := &logFile{p: p, path: path}
	if content, err := p.Machine.Drive().ReadFile(path); err == nil {
		l.content = content
		return l, nil
	}
	if err := p.Machine.Drive().WriteFile(path, nil); err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	return l, nil
}

// Write appends to the log. A failed write must not end a service.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.p.Alive() {
		return 0, fake.ErrProcessEnded
	}
	l.content = append(l.content, b...)
	if surplus := len(l.content) - logBytes; surplus > 0 {
		l.content = append([]byte(nil), l.content[surplus:]...)
	}
	_ = l.p.Machine.Drive().WriteFile(l.path, l.content)
	return len(b), nil
}

// logTo redirects the output of a program to a log file, if a path is set.
func logTo(p *node.Process, path string) error {
	if path == "" {
		return nil
	}
	log, err := p.Machine.OpenLog(path)
	if err != nil {
		return err
	}
	p.Stdout, p.Stderr = log, log
	return nil
}

// parentDirectory returns the part of a path before its last backslash.
func parentDirectory(path string) string { return path[:max(strings.LastIndexByte(path, '\\'), 0)] }
