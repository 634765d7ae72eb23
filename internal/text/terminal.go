package text

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Terminal writes foreign text of several lines to a terminal. It replaces what is not printable, except tabs and line feeds: a
// terminal obeys control characters, and others reverse the direction of the text. It is safe for concurrent use.
type Terminal struct {
	Out io.Writer

	mu sync.Mutex
	// partial is the beginning of a character whose rest was not written yet.
	partial []byte
}

// Write implements io.Writer.
func (t *Terminal) Write(foreign []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := slices.Concat(t.partial, foreign)
	whole := len(pending) - unfinished(pending)
	t.partial = bytes.Clone(pending[whole:])
	if _, err := io.WriteString(t.Out, PrintableLines(string(pending[:whole]))); err != nil {
		return 0, err
	}
	return len(foreign), nil
}

// unfinished returns how many bytes at the end are the beginning of a character.
func unfinished(content []byte) int {
	for length := 1; length < utf8.UTFMax && length <= len(content); length++ {
		if end := content[len(content)-length:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return length
		}
	}
	return 0
}

// PrintableLines returns a text in which each character that is not printable is replaced, except tabs and line feeds.
// Carriage returns are removed: lines of Windows end with one.
func PrintableLines(foreign string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case r == '\n', r == '\t', unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r) && r > unicode.MaxLatin1, r == 0xa0:
			return ' '
		}
		return unicode.ReplacementChar
	}, foreign)
}
