package host

import "strings"

// CommandLine joins a program and its arguments into the single string that CreateProcess and the service control
// manager require. The words are quoted so that CommandLineToArgvW returns the same words. Source: "Parsing C++
// command-line arguments", Microsoft C runtime documentation.
func CommandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

func quoteWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\v\"") {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	backslashes := 0
	for _, c := range []byte(word) {
		switch c {
		case '\\':
			backslashes++
		case '"':
			// Backslashes before a quote are doubled, and the quote is escaped.
			b.WriteString(strings.Repeat(`\`, backslashes+1))
			backslashes = 0
		default:
			backslashes = 0
		}
		b.WriteByte(c)
	}
	// Backslashes before the closing quote are doubled.
	b.WriteString(strings.Repeat(`\`, backslashes))
	b.WriteByte('"')
	return b.String()
}

// SplitCommandLine splits a command line like CommandLineToArgvW.
func SplitCommandLine(line string) []string {
	var words []string
	var word strings.Builder
	inWord, inQuotes := false, false
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == '\\':
			n := 0
			for i < len(line) && line[i] == '\\' {
				n++
				i++
			}
			inWord = true
			if i < len(line) && line[i] == '"' {
				word.WriteString(strings.Repeat(`\`, n/2))
				if n%2 == 1 {
					word.WriteByte('"')
					i++
				}
				continue
			}
			word.WriteString(strings.Repeat(`\`, n))
		case c == '"':
			inWord = true
			if inQuotes && i+1 < len(line) && line[i+1] == '"' {
				word.WriteByte('"')
				i++
			} else {
				inQuotes = !inQuotes
			}
			i++
		case (c == ' ' || c == '\t') && !inQuotes:
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			i++
		default:
			inWord = true
			word.WriteByte(c)
			i++
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}
