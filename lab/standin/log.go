package standin

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// logBytes is how much of a log is kept.
const logBytes = 64 << 10

// logFile is a log on the drive of a simulated host.
type logFile struct {
	p    *fake.Process
	path string

	mu      sync.Mutex
	content []byte
}

// OpenLog makes or continues a log. As for the real programs, its folder must be there.
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

// Write adds to the log. A log that cannot be written is no reason for a service to end.
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

// logTo sends what a program writes to a log, if it was told one.
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

// folder returns the part of a path before its last backslash.
func folder(path string) string { return path[:max(strings.LastIndexByte(path, '\\'), 0)] }
