package winhost

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// session is one session channel: one command or one SFTP server.
type session struct {
	*connection
	channel ssh.Channel
	// closed is done when the client has closed the session, or the connection has ended.
	closed context.Context
	leave  context.CancelFunc
	used   bool
}

func newSession(c *connection, channel ssh.Channel) *session {
	s := &session{connection: c, channel: channel}
	s.closed, s.leave = context.WithCancel(c.ctx)
	return s
}

// serveRequests serves the session's requests until the session is closed.
func (s *session) serveRequests(requests <-chan *ssh.Request) {
	defer s.leave()
	for request := range requests {
		run := s.handleRequest(request)
		if request.WantReply {
			_ = request.Reply(run != nil, nil) // the connection may be closed
		}
		if run != nil {
			s.used = true
			s.host.group.Go(func() { s.run(run) })
		}
	}
}

// handleRequest returns the function that serves a request; nil refuses it. As OpenSSH by default, the server ignores
// the client's environment.
func (s *session) handleRequest(request *ssh.Request) (run func() (exitCode int)) {
	switch request.Type {
	case "exec":
		var payload struct{ Command string }
		if s.used || ssh.Unmarshal(request.Payload, &payload) != nil {
			return nil
		}
		return func() int { return s.execCommand(payload.Command) }
	case "subsystem":
		var payload struct{ Name string }
		if s.used || ssh.Unmarshal(request.Payload, &payload) != nil || payload.Name != "sftp" {
			return nil
		}
		return s.serveSFTP
	case "shell", "pty-req":
		s.host.recordEntry(KindForbidden, request.Type+": the lab has no terminals")
	}
	return nil
}

// run runs the function and sends the exit status.
func (s *session) run(run func() int) {
	status := struct{ Status uint32 }{uint32(run())}
	s.host.recordTraffic()
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(status)) // the client may be gone
	_ = s.channel.Close()
}

// serveSFTP serves files until the client closes the session.
func (s *session) serveSFTP() int {
	s.host.recordEntry(fake.KindSFTP, fmt.Sprintf("%s from %s", s.ssh.User(), s.wire.RemoteAddr()))
	if err := serveFiles(s.channel, s.host, s.ssh.User()); err != nil {
		s.host.recordEntry(KindSSHD, "SFTP: "+err.Error())
		return 1
	}
	return 0
}

// execCommand runs the command line in the default shell.
func (s *session) execCommand(line string) (exitCode int) {
	shell := s.host.defaultShell()
	s.host.recordEntry(KindCommand, line)
	ended := s.recordSession(line)
	defer ended()
	ctx, kill := s.commandContext()
	defer kill()
	if noise := s.host.faults.findActive(NoiseBeforeOutput); noise != nil {
		_, _ = io.WriteString(s.channel, cmp.Or(noise.parameters.Text, defaultNoise)) // the client may be gone
	}
	action, err := shell.parsingRules().read(line, s.host.shellEnvironment(ctx, s.ssh.User()))
	if err != nil {
		s.host.recordEntry(KindForbidden, fmt.Sprintf("%v: %s", err, line))
		_, _ = fmt.Fprintf(s.channel.Stderr(), "%v\r\n", err) // the client may be gone
		return 1
	}
	_, _ = io.WriteString(s.channel, action.output) // the client may be gone
	if action.program == "" {
		return 0
	}
	return s.host.runProgram(ctx, shell, action, command{
		line: line, user: s.ssh.User(), client: s.wire.RemoteAddr(), stderr: s.channel.Stderr(),
		stdout: &commandOutput{host: s.host, wire: s.wire, line: line, channel: s.channel, kill: kill},
	})
}

// First words of entries of KindSession.
const (
	SessionBegan = "began"
	SessionEnded = "ended"
)

// recordSession records the start and the end of a command's session, which may end before the command.
func (s *session) recordSession(line string) (ended func()) {
	client := s.wire.RemoteAddr()
	s.host.recordEntry(KindSession, fmt.Sprintf("%s %s %s", SessionBegan, client, line))
	end := sync.OnceFunc(func() { s.host.recordEntry(KindSession, fmt.Sprintf("%s %s %s", SessionEnded, client, line)) })
	context.AfterFunc(s.closed, end)
	return end
}

// commandContext is done when a command must end: with the session or, if commands survive sessions, with the server.
func (s *session) commandContext() (context.Context, context.CancelFunc) {
	ctx, kill := context.WithCancel(s.host.running)
	stop := context.AfterFunc(s.closed, func() {
		if s.host.faults.findActive(VerbSurvivesSession) == nil {
			kill()
		}
	})
	return ctx, func() {
		stop()
		kill()
	}
}
