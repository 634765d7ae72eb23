package winhost

import (
	"strings"
)

// bashRules are the rules of bash -c, from Git or Cygwin.
type bashRules struct{}

func (bashRules) read(line string, env environment) (action, error) {
	words, err := (&bashReader{line: line, env: env}).readWords()
	if err != nil || len(words) == 0 {
		return action{}, err
	}
	if words[0] == "echo" {
		return action{output: strings.Join(words[1:], " ") + "\n"}, nil
	}
	return action{program: words[0], args: words[1:]}, nil
}

type bashReader struct {
	line   string
	env    environment
	at     int
	word   strings.Builder
	inWord bool
	all    []string
}

func (r *bashReader) readWords() ([]string, error) {
	for r.at < len(r.line) {
		c := r.line[r.at]
		r.at++
		switch {
		case c == ' ' || c == '\t':
			r.endWord()
		case strings.IndexByte(";|&<>(){}`\r\n", c) >= 0:
			return nil, newRefusal(Bash, "the operator %q", c)
		case c == '\\':
			r.readLiteral()
		case c == '\'':
			text, rest, closed := strings.Cut(r.line[r.at:], "'")
			if !closed {
				return nil, newRefusal(Bash, "a string without an end")
			}
			r.write(text)
			r.at = len(r.line) - len(rest)
		case c == '"':
			if err := r.doubleQuoted(); err != nil {
				return nil, err
			}
		case c == '$':
			if err := r.expandVariable(); err != nil {
				return nil, err
			}
		default:
			r.write(string([]byte{c}))
		}
	}
	r.endWord()
	return r.all, nil
}

func (r *bashReader) write(text string) {
	r.word.WriteString(text)
	r.inWord = true
}

// readLiteral reads the next character literally, after the backslash.
func (r *bashReader) readLiteral() {
	if r.at < len(r.line) {
		r.write(r.line[r.at : r.at+1])
		r.at++
	}
}

func (r *bashReader) endWord() {
	if r.inWord {
		r.all = append(r.all, r.word.String())
	}
	r.word.Reset()
	r.inWord = false
}

func (r *bashReader) doubleQuoted() error {
	r.inWord = true
	for r.at < len(r.line) {
		c := r.line[r.at]
		r.at++
		switch {
		case c == '"':
			return nil
		case c == '\\' && r.at < len(r.line) && strings.IndexByte("\"\\$`", r.line[r.at]) >= 0:
			r.readLiteral()
		case c == '`':
			return newRefusal(Bash, "a backtick")
		case c == '$':
			if err := r.expandVariable(); err != nil {
				return err
			}
		default:
			r.write(string([]byte{c}))
		}
	}
	return newRefusal(Bash, "a string without an end")
}

// expandVariable inserts the value of a variable. An unset variable inserts nothing, not even an empty word.
func (r *bashReader) expandVariable() error {
	end := r.at
	for end < len(r.line) && isName(r.line[end]) {
		end++
	}
	name := r.line[r.at:end]
	if name == "" && end < len(r.line) && strings.IndexByte("({$?!#@*", r.line[end]) >= 0 {
		return newRefusal(Bash, "$%c", r.line[end])
	}
	r.at = end
	if name == "" {
		r.write("$")
	} else if value := r.env[strings.ToLower(name)]; value != "" {
		r.write(value)
	}
	return nil
}

func (bashRules) explainFailure(failure failure, program string) (string, int) {
	message := func(what string) string { return "bash: line 1: " + program + ": " + what + "\n" }
	switch {
	case failure == accessDenied:
		return message("Permission denied"), 126
	case failure == notExecutable:
		return message("cannot execute binary file: Exec format error"), 126
	case strings.Contains(program, "/"):
		return message("No such file or directory"), 127
	}
	return message("command not found"), 127
}

func (bashRules) exitCode(program int) int { return program }
