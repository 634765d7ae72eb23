package status

import (
	"strings"
)

// wrapText breaks a text between words into indented lines of at most width characters. A width of 0 keeps the
// text on one line.
func wrapText(text, indent string, width int) string {
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

// wrapWithLabel is like wrapText, with a label instead of the indent in the first line.
func wrapWithLabel(label, text string, width int) string {
	indent := strings.Repeat(" ", len(label))
	body := wrapText(text, indent, width)
	if body == "" {
		return strings.TrimRight(label, " ")
	}
	return label + body[len(indent):]
}
