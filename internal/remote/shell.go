package remote

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// shellQuestion identifies the shell: cmd.exe expands %OS%, PowerShell expands $PSHOME, and other shells support
// neither.
const shellQuestion = "echo %OS% $PSHOME"

// shellAnswerLimit is the maximum number of bytes read of the answer.
const shellAnswerLimit = 64 << 10

// shell is a host's default shell for SSH sessions.
type shell int

const (
	shellOther shell = iota
	shellCmd
	shellPowerShell
)

// powerShellHome is a value of $PSHOME on Windows.
var powerShellHome = regexp.MustCompile(`(?i)[a-z]:\\[^\r\n]*powershell`)

// shellOf returns the shell that gave this answer to shellQuestion. The answer may contain noise.
func shellOf(answer string) shell {
	switch {
	case strings.Contains(answer, "Windows_NT") && strings.Contains(answer, "$PSHOME"):
		return shellCmd
	case strings.Contains(answer, "%OS%") && powerShellHome.MatchString(answer):
		return shellPowerShell
	}
	return shellOther
}

// notStartedError runs one command to determine the reason for the agent's missing answer.
func (x *execution) notStartedError(ctx context.Context, s *session) error {
	c := x.connection
	answer, err := c.queryShell(ctx)
	if err != nil {
		return err
	}
	if shellOf(answer) == shellOther {
		return c.unsupportedShellError(answer)
	}
	e := &Error{Reason: ReasonAgentStartFailed, Host: c.target.Address, Err: s.exit,
		Message: fmt.Sprintf("the agent %s did not start (%s)%s", x.agent, exitText(s.exit), x.quoteOutput(s)),
		Next:    "the operator retries; run the agent on the host manually to see the error of Windows"}
	there, err := c.Exists(ctx, x.agent)
	gone := err == nil && !there
	if gone || isBlocked(x.quoteOutput(s)) {
		e.Reason = ReasonAgentBlocked
		e.Message = fmt.Sprintf("the agent %s is blocked%s", x.agent, x.quoteOutput(s))
		e.Next = "allow " + nodespec.AgentRoot + " and " + nodespec.LandingRoot +
			` in the host's antivirus and application control (Defender, AppLocker, WDAC)`
	}
	if gone {
		e.Message = fmt.Sprintf("the agent %s is no longer on the host: another program deleted the file", x.agent)
	}
	return e
}

// blockedTexts are the messages of English Windows when a policy or an antivirus blocks a program. In other languages
// the reason is AgentStartFailed, and the message quotes Windows. "Access is denied" is included: the user could
// write the program, so the user's permissions are not the cause.
var blockedTexts = []string{
	"access is denied", "blocked by group policy", "virus or potentially unwanted", "blocked by your administrator",
	"has been blocked", "application control policy",
}

func isBlocked(output string) bool {
	output = strings.ToLower(output)
	for _, text := range blockedTexts {
		if strings.Contains(output, text) {
			return true
		}
	}
	return false
}

// queryShell runs shellQuestion and returns its output.
func (c *Connection) queryShell(ctx context.Context) (string, error) {
	s, err := c.openSession(ctx)
	if err != nil {
		return "", err
	}
	if err := c.start(ctx, s, func() error { return s.Start(shellQuestion) }); err != nil {
		if ReasonOf(err) == ReasonSessionRejected {
			// The default shell itself cannot be started.
			return "", nil
		}
		return "", err
	}
	var answer []byte
	w := newWatch(c.clock, "the response of the shell to an echo", c.limits.HelloTimeout)
	err = c.runWork(ctx, w, func() { _ = s.Close() }, func() (err error) {
		answer, err = io.ReadAll(io.LimitReader(s.stdout, shellAnswerLimit))
		return err
	})
	c.endSession(ctx, s, newWatch(c.clock, "the shell to end", c.limits.EndTimeout))
	return string(answer), c.callerError(ctx, err, c.sessionRefusedError)
}

// unsupportedShellError returns the error with the procedure to set a supported shell.
func (c *Connection) unsupportedShellError(answer string) error {
	said := sanitizeText(answer)
	if said == "" {
		said = "nothing"
	}
	return &Error{Reason: ReasonShellUnsupported, Host: c.target.Address,
		Message: fmt.Sprintf("the default shell of the SSH server is neither cmd.exe nor PowerShell (response to %q: %s)",
			shellQuestion, said),
		Next: `restore cmd.exe as the default shell: in an elevated PowerShell on the host run ` +
			`Remove-ItemProperty -Path HKLM:\SOFTWARE\OpenSSH -Name DefaultShell, then Restart-Service sshd`}
}
