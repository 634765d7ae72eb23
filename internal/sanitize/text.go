// Package sanitize sanitizes foreign texts, such as texts from a host, for people and for the API.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable returns a text as one line of printable characters: terminals execute control characters, and other
// characters reverse the direction of the text.
func Printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(clean)
}

// Shorten returns a text of at most the given number of bytes, cut at the boundary of a character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	cut := most - len(more)
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + more
}

// Plain returns a foreign text in a form that is safe in a terminal: one line without control characters,
// limited to a number of bytes.
func Plain(foreign string, most int) string {
	plain := Shorten(Printable(foreign), most)
	if len(plain) < len(foreign) {
		return strings.Clone(plain) // otherwise the complete foreign text might stay in memory
	}
	return plain
}

// Sentence ends a text with a period, so that another sentence can follow.
func Sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// Pluralize returns a number with its noun. The default plural of a noun has an s.
func Pluralize(n int, singular string, plural ...string) string {
	switch {
	case n == 1:
		return "1 " + singular
	case len(plural) > 0:
		return fmt.Sprintf("%d %s", n, plural[0])
	}
	return fmt.Sprintf("%d %ss", n, singular)
}

// FormatMebibytes returns a number of bytes in MiB.
func FormatMebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
