package remote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// Run runs one agent command and waits for its end. The arguments must be plain words: letters, digits and . : \ _ -,
// beginning with a letter or a dash, or an HTTPS URL with a port. Each line of the answer is passed to onLine (which
// may be nil). Run returns the last line: a result, or a notice of a host restart. After such a notice, Run closes
// the connection when the host has ended the session.
//
// A failure reported by the agent is an *Error with the agent's reason that wraps *agentapi.Failure. When ctx ends, the
// session is closed; the agent may continue to run.
func (c *Connection) Run(ctx context.Context, agentPath string, name agentapi.Name, args []string,
	onLine func(agentapi.Line)) (agentapi.Line, error) {
	command, err := commandLine(agentPath, name, args)
	if err != nil {
		return agentapi.Line{}, err
	}
	x := &execution{connection: c, agent: agentPath, command: name, onLine: onLine}
	return x.run(ctx, command)
}

// execution is one run of an agent command.
type execution struct {
	connection *Connection
	agent      string
	command    agentapi.Name
	onLine     func(agentapi.Line)

	answered bool // the agent sent at least one line
	last     agentapi.Line
	noise    tail // standard output other than the answer
}

func (x *execution) run(ctx context.Context, command string) (agentapi.Line, error) {
	c := x.connection
	s, err := c.openSession(ctx)
	if err != nil {
		return agentapi.Line{}, err
	}
	if err := c.start(ctx, s, func() error { return s.Start(command) }); err != nil {
		return agentapi.Line{}, err
	}
	w := newWatch(c.clock, fmt.Sprintf("the first line of agent command %s", x.command), c.limits.HelloTimeout)
	err = c.runWork(ctx, w, func() { _ = s.Close() }, func() error { return x.read(s, w) })
	if err == nil && isFinal(x.last) {
		return x.awaitAgentEnd(ctx, s)
	}
	// Without a final line, the session is over.
	end := newWatch(c.clock, "the end of the session", c.limits.EndTimeout)
	if bound, overrun := (*boundError)(nil), (*overrunError)(nil); errors.As(err, &bound) || errors.As(err, &overrun) {
		end = nil // the remaining output is discarded
	}
	c.endSession(ctx, s, end)
	return agentapi.Line{}, c.callerError(ctx, cmp.Or(err, errNoAnswer), func(err error) error {
		return x.missingAnswerError(ctx, s, err)
	})
}

// errNoAnswer reports output that ended before the agent's last line.
var errNoAnswer = errors.New("the output ended before the agent's last line")

// read reads the answer up to its last line or the end of the output.
func (x *execution) read(s *session, w *watch) error {
	c := x.connection
	r := bufio.NewReaderSize(s.stdout, 64<<10)
	begin, received := c.clock.Now(), 0
	for {
		data, err := readLine(r)
		if bound := (*boundError)(nil); errors.As(err, &bound) {
			return err
		}
		if err != nil {
			// This is the end of the output or of the connection; callerError distinguishes them.
			return nil //nolint:nilerr // a cut output is judged by what is missing
		}
		if received += len(data) + 1; received > answerLimit {
			return errAnswerTooLong
		}
		line, ok, err := decodeLine(data)
		if err != nil {
			return err
		}
		if !ok {
			_, _ = x.noise.Write(append(data, '\n'))
			continue
		}
		if !isFinal(line) && c.clock.Since(begin) > c.limits.CommandTimeout {
			return &overrunError{c.limits.CommandTimeout}
		}
		w.expectNext(fmt.Sprintf("the next line of agent command %s", x.command), c.limits.SilenceTimeout)
		x.answered, x.last = true, line
		if x.onLine != nil {
			x.onLine(line)
		}
		if isFinal(line) {
			return nil
		}
	}
}

func isFinal(line agentapi.Line) bool {
	return line.Type == agentapi.TypeResult || line.Type == agentapi.TypeFailure || line.Type == agentapi.TypeRebooting
}

// awaitAgentEnd waits briefly for the end of the agent and returns its last line.
func (x *execution) awaitAgentEnd(ctx context.Context, s *session) (agentapi.Line, error) {
	c := x.connection
	if x.last.Type == agentapi.TypeRebooting {
		// Closing the session early might end the agent before it has requested the restart from Windows.
		c.endSession(ctx, s, newWatch(c.clock, "the host to restart", c.limits.RebootTimeout))
		c.closeWithCause(ErrClosed)
		return x.last, nil
	}
	c.endSession(ctx, s, newWatch(c.clock, "the agent to end", c.limits.EndTimeout))
	if x.last.Type == agentapi.TypeFailure {
		failure := x.last.Failure
		if failure == nil {
			failure = &agentapi.Failure{Reason: agentapi.ReasonAgentError, Message: "the agent failed without a reason"}
		}
		return x.last, &Error{Reason: Reason(failure.Reason), Host: c.target.Address, Message: sanitizeText(failure.Error()),
			Err: failure}
	}
	return x.last, nil
}

// missingAnswerError returns the error for a missing answer.
func (x *execution) missingAnswerError(ctx context.Context, s *session, err error) error {
	c := x.connection
	e := &Error{Host: c.target.Address, Err: err}
	var timeout *TimeoutError
	var bound *boundError
	var overrun *overrunError
	switch {
	case errors.As(err, &timeout):
		e.Reason = ReasonAgentTimedOut
		e.Message = fmt.Sprintf("agent command %s does not respond (%v)", x.command, timeout)
		e.Next = "the operator retries; check the host's load"
	case errors.As(err, &bound):
		e.Reason = ReasonAgentExited
		e.Message = fmt.Sprintf("the response of agent command %s is not valid (%v): another program than the operator's agent responded", x.command, err)
		e.Next = "the operator retries; check the host for unauthorized access"
	case errors.As(err, &overrun):
		e.Reason = ReasonAgentExited
		e.Message = fmt.Sprintf("agent command %s was stopped: %v", x.command, overrun)
		e.Next = "the next run resumes; check the load and the disk speed of the host"
	case x.answered:
		e.Reason = ReasonAgentExited
		e.Message = fmt.Sprintf("agent command %s ended without a result (%s)%s", x.command, exitText(s.exit), x.quoteOutput(s))
		e.Next = "the operator retries"
	default:
		return x.notStartedError(ctx, s)
	}
	return e
}

// quoteOutput returns the end of the output other than the answer, for a message.
func (x *execution) quoteOutput(s *session) string {
	var texts []string
	for _, text := range []string{s.stderr.String(), x.noise.String()} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, " | ")
}
