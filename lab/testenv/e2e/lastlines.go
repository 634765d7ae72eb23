package e2e

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

const (
	// maxLines suffices for the start of an operator and its last actions.
	maxLines = 80
	// maxLineLength is the limit for truncating the traces of errors.
	maxLineLength = 500
)

// lastLines keeps the end of the log for a test that fails on another machine, where nothing else remains of the
// operator.
type lastLines struct {
	mu      sync.Mutex
	lines   []string
	dropped int
}

// newLogger returns a logger that appends to the lines.
func (l *lastLines) newLogger() logr.Logger {
	return funcr.New(l.appendLine, funcr.Options{LogTimestamp: true, TimestampFormat: "15:04:05.000"})
}

func (l *lastLines) appendLine(prefix, line string) {
	if line = prefix + " " + line; len(line) > maxLineLength {
		line = strings.ToValidUTF8(line[:maxLineLength], "") + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines = append(l.lines, line); len(l.lines) > maxLines {
		l.lines = l.lines[1:]
		l.dropped++
	}
}

// String returns the lines, and the number of earlier lines.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d earlier lines\n%s", l.dropped, strings.Join(l.lines, "\n"))
}
