package winhost

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// cmdRules are the rules of cmd.exe /c "<line>". cmd.exe removes the quotes that sshd adds around the line.
type cmdRules struct{}

// cmdBuiltins are commands of cmd.exe itself.
var cmdBuiltins = []string{
	"assoc", "break", "call", "cd", "chcp", "chdir", "cls", "color", "copy", "date", "del", "dir", "echo",
	"endlocal", "erase", "exit",
	"for", "ftype", "goto", "if", "md", "mkdir", "mklink", "move", "path", "pause", "popd", "prompt",
	"pushd", "rd", "rem", "ren",
	"rename", "rmdir", "set", "setlocal", "shift", "start", "time", "title", "type", "ver", "verify", "vol",
}

func (cmdRules) read(line string, env environment) (action, error) {
	line, err := cmdExpand(line, env)
	if err != nil {
		return action{}, err
	}
	if line, err = cmdUnescape(line); err != nil {
		return action{}, err
	}
	line = strings.TrimLeft(line, " \t,;=@")
	if line == "" {
		return action{}, nil
	}
	name, rest := cmdCutName(line)
	builtin := strings.ToLower(strings.TrimRight(name, `.:`))
	switch {
	case strings.EqualFold(name, "echo"):
		return cmdEcho(rest), nil
	case slices.Contains(cmdBuiltins, builtin):
		return action{}, newRefusal(Cmd, "its command %q", builtin)
	}
	return action{program: strings.ReplaceAll(name, `"`, ""), args: host.SplitCommandLine(rest)}, nil
}

// cmdExpand replaces %NAME%. An unset variable is not replaced, because the line is not a batch file.
func cmdExpand(line string, env environment) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(line, "%")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, closed := strings.Cut(after, "%")
		if !closed {
			b.WriteString("%" + after)
			return b.String(), nil
		}
		value, set := env[strings.ToLower(name)]
		switch {
		case set:
			b.WriteString(value)
			line = rest
		case strings.Contains(name, ":"):
			return "", newRefusal(Cmd, "the substitution %%%s%%", name)
		default:
			b.WriteString("%" + name)
			line = "%" + rest // may begin the next name
		}
	}
}

// cmdUnescape removes the carets and refuses operators outside of quotes.
func cmdUnescape(line string) (string, error) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\r' || c == '\n':
			return "", newRefusal(Cmd, "a line break")
		case quoted:
		case strings.IndexByte(`&|<>()`, c) >= 0:
			return "", newRefusal(Cmd, "the operator %q", c)
		case c == '^' && i+1 == len(line):
			return "", newRefusal(Cmd, "a caret at the end")
		case c == '^':
			i++
			c = line[i]
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// cmdCutName cuts the line behind the command's name. A slash begins the first argument even without a space.
func cmdCutName(line string) (name, rest string) {
	quoted := false
	for i, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(" \t,;=/", c):
			return line[:i], line[i:]
		}
	}
	return line, ""
}

func cmdEcho(rest string) action {
	if strings.TrimSpace(rest) == "" {
		return action{output: "ECHO is on.\r\n"}
	}
	return action{output: rest[1:] + "\r\n"}
}

func (cmdRules) explainFailure(failure failure, program string) (string, int) {
	switch failure {
	case directoryNotFound:
		return "The system cannot find the path specified.\r\n", 1
	case notExecutable:
		return "This version of " + program +
			" is not compatible with the version of Windows you're running. Check your computer's " +
			"system information and then contact the software publisher.\r\n", 1
	case accessDenied:
		return "Access is denied.\r\n", 1
	}
	return "'" + program +
		"' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n", 1
}

func (cmdRules) exitCode(program int) int { return program }
