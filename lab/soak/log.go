package soak

import (
	"io"
	"sync"
)

// log counts and writes the log messages of the operator.
type log struct {
	mu           sync.Mutex
	to           io.Writer
	lines, bytes int
	err          error // of the first failed write
}

func (l *log) appendLine(prefix, arguments string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := prefix + " " + arguments + "\n"
	l.lines, l.bytes = l.lines+1, l.bytes+len(line)
	if l.to != nil && l.err == nil {
		_, l.err = io.WriteString(l.to, line)
	}
}

func (l *log) readTotals() (lines, bytes int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines, l.bytes, l.err
}
