package winhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// agentName is the program that AgentBlocked blocks.
const agentName = "wicd.exe"

// command is a command line with its context: user, client and output.
type command struct {
	line           string
	user           string
	client         net.Addr
	stdout, stderr io.Writer
}

// defaultShell returns the current default shell.
func (h *Host) defaultShell() Shell {
	switch {
	case h.faults.findActive(PowerShellDefaultShell) != nil:
		return PowerShell
	case h.faults.findActive(BashDefaultShell) != nil:
		return Bash
	}
	return h.options.Shell
}

// runProgram runs the program of an action and returns the shell's exit code.
func (h *Host) runProgram(ctx context.Context, shell Shell, action action, c command) int {
	rules := shell.parsingRules()
	failed := func(failure failure) int {
		message, code := rules.explainFailure(failure, action.program)
		_, _ = io.WriteString(c.stderr, message) // the client may be gone
		return code
	}
	if isForbidden(action.program) {
		h.recordEntry(KindForbidden, fmt.Sprintf("%s: %s", action.program, c.line))
		return failed(notFound)
	}
	path, err := h.findProgram(action.program)
	if err != nil {
		return failed(h.missingFailure(action.program))
	}
	if h.faults.findActive(AgentBlocked) != nil && strings.HasSuffix(strings.ToLower(path), `\`+agentName) {
		h.recordEntry(KindSSHD, "blocked "+path)
		return failed(accessDenied)
	}
	code, err := h.machine.Exec(ctx, fake.ExecRequest{
		Path: path, Args: action.args, Environ: h.loginEnvironment(c), Stdout: c.stdout, Stderr: c.stderr,
	})
	switch {
	case errors.Is(err, fake.ErrNotExecutable):
		return failed(notExecutable)
	case errors.Is(err, host.ErrNotExist):
		return failed(notFound) // removed just now
	case errors.Is(err, fs.ErrPermission):
		return failed(accessDenied)
	case err != nil:
		return rules.exitCode(1) // killed: TerminateProcess leaves a 1
	}
	return rules.exitCode(code)
}

// findProgram finds a program like a shell. Relative paths are not found, because the session is in the user's own
// directory.
func (h *Host) findProgram(program string) (string, error) {
	program = strings.ReplaceAll(program, "/", `\`)
	if strings.Contains(program, `\`) && (len(program) < 3 || program[1] != ':') {
		return "", host.ErrNotExist
	}
	path, err := h.machine.FindExecutable(program)
	if err != nil {
		return "", err
	}
	for _, extension := range []string{".exe", ".com"} {
		if strings.HasSuffix(strings.ToLower(path), extension) {
			return path, nil
		}
	}
	return "", host.ErrNotExist
}

// missingFailure distinguishes the failures that the shells distinguish.
func (h *Host) missingFailure(program string) failure {
	end := strings.LastIndexByte(program, '\\')
	if end <= len(`C:`) {
		return notFound
	}
	if _, err := h.machine.Drive().Stat(program[:end]); err != nil {
		return directoryNotFound
	}
	return notFound
}

func (h *Host) loginEnvironment(c command) map[string]string {
	env := h.userEnvironment(c.user)
	if address, port, err := net.SplitHostPort(c.client.String()); err == nil {
		env["SSH_CLIENT"] = address + " " + port + " 22"
	}
	return env
}
