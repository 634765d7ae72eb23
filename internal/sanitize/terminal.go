package sanitize

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Terminal writes foreign text of several lines to a terminal. It replaces non-printable characters except tabs
// and line feeds: a terminal executes control characters, and other characters reverse the direction of the
// text. It is safe for concurrent use.
type Terminal struct {
	Out io.Writer

	mu sync.Mutex
	// partial is the beginning of an incomplete character.
	partial []byte
}

// Write implements io.Writer.
func (t *Terminal) Write(foreign []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := slices.Concat(t.partial, foreign)
	whole := len(pending) - incompleteLength(pending)
	t.partial = bytes.Clone(pending[whole:])
	if _, err := io.WriteString(t.Out, PrintableLines(string(pending[:whole]))); err != nil {
		return 0, err
	}
	return len(foreign), nil
}

// incompleteLength returns the number of bytes of an incomplete character at the end.
func incompleteLength(content []byte) int {
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

// PrintableLines returns a text with each non-printable character replaced, except tabs and line feeds.
// It removes carriage returns, because lines of Windows end with a carriage return.
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
