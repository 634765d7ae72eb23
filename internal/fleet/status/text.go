package status

import (
	"strings"
)

// wrapped breaks a text into lines of at most so many characters, between words, and puts the indent before each. A
// width of 0 leaves it on one line.
func wrapped(text, indent string, width int) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	var lines []string
	line := indent + words[0]
	for _, word := range words[1:] {
		if width > 0 && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = indent + word
			continue
		}
		line += " " + word
	}
	return strings.Join(append(lines, line), "\n")
}

// hanging is wrapped, with the first line after a label instead of the indent.
func hanging(label, text string, width int) string {
	indent := strings.Repeat(" ", len(label))
	body := wrapped(text, indent, width)
	if body == "" {
		return strings.TrimRight(label, " ")
	}
	return label + body[len(indent):]
}
