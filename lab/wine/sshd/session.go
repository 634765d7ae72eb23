//go:build windows

package main

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// session is one session channel: one command, or one SFTP server.
type session struct {
	*server
	channel ssh.Channel
	user    string
	peers   string // the addresses and ports of client and server, as in SSH_CONNECTION
	used    bool
	closed  chan struct{} // closed when the client has closed the session or disconnected
	once    sync.Once
}

func (s *session) serveRequests(requests <-chan *ssh.Request) {
	defer s.once.Do(func() { close(s.closed) })
	for request := range requests {
		run := s.handleRequest(request)
		if request.WantReply {
			_ = request.Reply(run != nil, nil) // the client may have disconnected
		}
		if run != nil {
			s.used = true
			go s.run(run)
		}
	}
}

// handleRequest returns the function to run for a request; nil refuses the request. As in OpenSSH by default,
// terminals and environment variables are refused.
func (s *session) handleRequest(request *ssh.Request) (run func() (exitCode uint32)) {
	if s.used {
		return nil
	}
	switch request.Type {
	case "exec":
		var payload struct{ Command string }
		if ssh.Unmarshal(request.Payload, &payload) != nil {
			return nil
		}
		return func() uint32 { return s.execCommand(payload.Command) }
	case "subsystem":
		var payload struct{ Name string }
		if ssh.Unmarshal(request.Payload, &payload) != nil || payload.Name != "sftp" {
			return nil
		}
		return s.serveSFTP
	}
	return nil
}

func (s *session) run(run func() uint32) {
	status := struct{ Status uint32 }{run()}
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(status)) // the client may have disconnected
	_ = s.channel.Close()
}

func (s *session) execCommand(line string) uint32 {
	s.journal.write("exec", line)
	code, err := runCommand(line, s.peers, s.channel, s.closed)
	if err != nil {
		_, _ = fmt.Fprintf(s.channel.Stderr(), "%v\r\n", err) // the client may have disconnected
		code = 1
	}
	s.journal.write("exit", fmt.Sprintf("%d: %s", int32(code), line))
	return code
}

func (s *session) serveSFTP() uint32 {
	s.journal.write("sftp", s.user)
	files := &files{home: "/C:/Users/" + s.user}
	server := sftp.NewRequestServer(s.channel, sftp.Handlers{FileGet: files, FilePut: files,
		FileCmd: files, FileList: files},
		sftp.WithStartDirectory(files.home))
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}
