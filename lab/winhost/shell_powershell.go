package winhost

import (
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// powershellRules are the rules of Windows PowerShell 5.1 with -Command.
type powershellRules struct{}

const powershellHome = `C:\Windows\System32\WindowsPowerShell\v1.0`

func (powershellRules) read(line string, env environment) (action, error) {
	words, err := (&powershellReader{line: line, env: env}).readWords()
	if err != nil || len(words) == 0 {
		return action{}, err
	}
	name, args := words[0], words[1:]
	switch strings.ToLower(name) {
	case "echo", "write-output", "write":
		if len(args) == 0 {
			return action{}, newRefusal(PowerShell, "%s without an argument, which asks for input", name)
		}
		return action{output: strings.Join(args, "\r\n") + "\r\n"}, nil
	}
	return action{program: name, args: powershellArguments(args)}, nil
}

// powershellArguments returns the arguments of a program. PowerShell 5.1 quotes words with spaces, but neither
// escapes quotes in words nor passes empty words.
func powershellArguments(words []string) []string {
	var passed []string
	for _, word := range words {
		switch {
		case word == "":
		case strings.ContainsAny(word, " \t"):
			passed = append(passed, `"`+word+`"`)
		default:
			passed = append(passed, word)
		}
	}
	return host.SplitCommandLine(strings.Join(passed, " "))
}

// powershellReader parses a command line.
type powershellReader struct {
	line string
	env  environment
	at   int
}

func (r *powershellReader) readWords() ([]string, error) {
	var words []string
	for {
		for r.at < len(r.line) && (r.line[r.at] == ' ' || r.line[r.at] == '\t') {
			r.at++
		}
		if r.at == len(r.line) {
			return words, nil
		}
		word, err := r.readWord(len(words) == 0)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
}

func (r *powershellReader) readWord(first bool) (string, error) {
	if err := r.checkStart(first); err != nil {
		return "", err
	}
	start := r.at
	var b strings.Builder
	for r.at < len(r.line) {
		c := r.line[r.at]
		switch {
		case c == ' ' || c == '\t':
			return b.String(), checkParameter(r.line[start:r.at])
		case strings.IndexByte(";|&<>(){},\r\n", c) >= 0:
			return "", newRefusal(PowerShell, "the operator %q", c)
		case c == '\'' || c == '"':
			text, err := r.readQuoted(c)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		default:
			text, err := r.readCharacter()
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		}
	}
	return b.String(), checkParameter(r.line[start:r.at])
}

func (r *powershellReader) checkStart(first bool) error {
	switch rest := r.line[r.at:]; {
	case first && strings.ContainsAny(rest[:1], `"'$+-0123456789`):
		return newRefusal(PowerShell, "a line that is an expression and no command: %s", rest)
	case rest[0] == '@' || rest[0] == '#':
		return newRefusal(PowerShell, "%q at the beginning of a word", rest[0])
	case strings.HasPrefix(rest, "--%"):
		return newRefusal(PowerShell, "--%%")
	}
	return nil
}

// checkParameter refuses words like -name.json and -name:value, which PowerShell splits as a parameter.
func checkParameter(word string) error {
	if len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.ContainsAny(word, ".:") {
		return newRefusal(PowerShell, "%s, which it splits in two", word)
	}
	return nil
}

// readQuoted parses a string in quotes of either kind.
func (r *powershellReader) readQuoted(quote byte) (string, error) {
	var b strings.Builder
	for r.at++; r.at < len(r.line); {
		switch c := r.line[r.at]; {
		case c == quote && r.at+1 < len(r.line) && r.line[r.at+1] == quote:
			b.WriteByte(quote)
			r.at += 2
		case c == quote:
			r.at++
			return b.String(), nil
		case quote == '\'':
			b.WriteByte(c)
			r.at++
		default:
			text, err := r.readCharacter()
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		}
	}
	return "", newRefusal(PowerShell, "a string without an end")
}

// readCharacter parses one character, escaped character or variable.
func (r *powershellReader) readCharacter() (string, error) {
	c := r.line[r.at]
	r.at++
	switch {
	case c == '`' && r.at == len(r.line):
		return "", newRefusal(PowerShell, "a backtick at the end")
	case c == '`':
		r.at++
		return r.line[r.at-1 : r.at], nil
	case c == '$':
		return r.expandVariable()
	}
	return string([]byte{c}), nil
}

func (r *powershellReader) expandVariable() (string, error) {
	end := r.at
	for end < len(r.line) && (isName(r.line[end]) || r.line[end] == ':') {
		end++
	}
	name := strings.ToLower(r.line[r.at:end])
	if name == "" && end < len(r.line) && strings.IndexByte("({$?^", r.line[end]) >= 0 {
		return "", newRefusal(PowerShell, "$%c", r.line[end])
	}
	r.at = end
	switch variable, isEnvironment := strings.CutPrefix(name, "env:"); {
	case name == "":
		return "$", nil
	case isEnvironment:
		return r.env[variable], nil
	case name == "pshome":
		return powershellHome, nil
	}
	return "", nil // a variable that is not set
}

func isName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (powershellRules) explainFailure(failure failure, program string) (string, int) {
	errorRecord := func(message, category, id string) (string, int) {
		return fmt.Sprintf("%s\r\nAt line:1 char:1\r\n+ %s\r\n+ %s\r\n    + CategoryInfo          : %s\r\n    + FullyQualifiedErrorId : %s\r\n \r\n",
			message, program, strings.Repeat("~", len(program)), category, id), 1
	}
	failed := func(reason string) (string, int) {
		name := program[strings.LastIndexAny(program, `\/`)+1:]
		return errorRecord(fmt.Sprintf("Program '%s' failed to run: %s", name, reason),
			"ResourceUnavailable: (:) [], ApplicationFailedException",
			"NativeCommandFailed")
	}
	switch failure {
	case notExecutable:
		return failed("The specified executable is not a valid application for this OS platform.")
	case accessDenied:
		return failed("Access is denied")
	}
	return errorRecord(fmt.Sprintf("%s : The term '%s' is not recognized as the name of a cmdlet, function, script file, or operable program. "+
		"Check the spelling of the name, or if a path was included, verify that the path is correct and try again.", program,
		program),
		fmt.Sprintf("ObjectNotFound: (%s:String) [], CommandNotFoundException", program), "CommandNotFoundException")
}

// exitCode returns 1 for every failure: with -Command, PowerShell only reports whether the last command succeeded.
func (powershellRules) exitCode(program int) int {
	if program == 0 {
		return 0
	}
	return 1
}
