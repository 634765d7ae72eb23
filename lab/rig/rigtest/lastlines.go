package rigtest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

const (
	// mostLines suffices for the start of an operator and its last actions.
	mostLines = 80
	// longestLine is the limit for truncating the traces of errors.
	longestLine = 500
)

// lastLines keeps the end of the log for a test that fails on another machine, where nothing else remains of the
// operator.
type lastLines struct {
	mu      sync.Mutex
	lines   []string
	dropped int
}

// logger returns a logger that appends to the lines.
func (l *lastLines) logger() logr.Logger {
	return funcr.New(l.add, funcr.Options{LogTimestamp: true, TimestampFormat: "15:04:05.000"})
}

func (l *lastLines) add(prefix, line string) {
	if line = prefix + " " + line; len(line) > longestLine {
		line = strings.ToValidUTF8(line[:longestLine], "") + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines = append(l.lines, line); len(l.lines) > mostLines {
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
