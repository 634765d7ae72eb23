package remote_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// server is an SSH server like that of a Windows host. Set its fields before the first call of newTarget.
type server struct {
	t        testing.TB
	listener net.Listener
	started  sync.Once // by the first call of newTarget
	serving  sync.WaitGroup
	port     int
	config   *ssh.ServerConfig
	disk     *disk
	shell    string // "cmd", "powershell", "bash", "broken"
	agent    func(p *process) int

	wrap          func(net.Conn) net.Conn // network faults
	preamble      string                  // before the SSH identification
	deafTo        string                  // "keepalives", "sessions", "programs", "files"
	refuse        string                  // "sessions", "files"
	handlers      *sftp.Handlers          // file handlers used instead of the disk
	hung          chan string             // receives the name of each unanswered request
	stopped       chan struct{}
	connections   atomic.Int32
	living        atomic.Int32
	fileSessions  atomic.Int32
	mu            sync.Mutex
	commands      []string
	conns         []net.Conn
	authenticated ssh.PublicKey
}

// process is a program run by the server.
type process struct {
	server *server
	args   []string
	out    io.Writer
	err    io.Writer
	closed <-chan struct{} // the client has closed the session, or the server has stopped
	conn   net.Conn
}

func newServer(t testing.TB, login sshkey.Key) *server {
	t.Helper()
	s := &server{t: t, shell: "cmd", disk: newDisk(t), hung: make(chan string, 16), stopped: make(chan struct{}),
		authenticated: login.Signer().PublicKey()}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions,
		error) {
		if meta.User() != "Administrator" || string(key.Marshal()) != string(s.authenticated.Marshal()) {
			return nil, errors.New("not authorized")
		}
		return &ssh.Permissions{}, nil
	}}
	s.config.AddHostKey(newKey(t).Signer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener, s.port = listener, listener.Addr().(*net.TCPAddr).Port
	t.Cleanup(func() {
		_ = listener.Close()
		close(s.stopped)
		s.cutConnections()
		s.serving.Wait()
	})
	return s
}

// acceptConnections serves connections until the end of the test.
func (s *server) acceptConnections() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		s.serving.Go(func() { s.serveConnection(conn) })
	}
}

// cutConnections ends all connections at once, as in a power failure of the host.
func (s *server) cutConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *server) ranCommands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// hangRequest reports an unanswered request and blocks until the end.
func (s *server) hangRequest(what string, closed <-chan struct{}) {
	s.hung <- what
	select {
	case <-closed:
	case <-s.stopped:
	}
}

func (s *server) serveConnection(raw net.Conn) {
	defer func() { _ = raw.Close() }()
	s.connections.Add(1)
	s.living.Add(1)
	defer s.living.Add(-1)
	conn := raw
	if s.wrap != nil {
		conn = s.wrap(raw)
	}
	if _, err := io.WriteString(conn, s.preamble); err != nil {
		return
	}
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	closed := make(chan struct{})
	defer close(closed)
	all.Go(func() {
		for request := range requests {
			if s.deafTo != "keepalives" {
				_ = request.Reply(false, nil)
			} else {
				s.hung <- "keepalives"
			}
		}
	})
	for channel := range channels {
		if s.deafTo == "sessions" {
			all.Go(func() { s.hangRequest("sessions", closed) })
			continue
		}
		if s.refuse == "sessions" {
			_ = channel.Reject(ssh.ResourceShortage, "too many sessions")
			continue
		}
		ch, requests, err := channel.Accept()
		if err != nil {
			return
		}
		all.Go(func() { s.serveSession(raw, ch, requests) })
	}
}

func (s *server) serveSession(conn net.Conn, channel ssh.Channel, requests <-chan *ssh.Request) {
	closed := make(chan struct{})
	var running sync.WaitGroup
	for request := range requests {
		switch request.Type {
		case "subsystem":
			if s.refuse == "files" {
				_ = request.Reply(false, nil)
				continue
			}
			s.fileSessions.Add(1)
			_ = request.Reply(true, nil)
			running.Go(func() {
				if s.deafTo == "files" {
					s.hangRequest("files", closed)
					return
				}
				handlers := s.disk.sftpHandlers()
				if s.handlers != nil {
					handlers = *s.handlers
				}
				_ = sftp.NewRequestServer(channel, handlers).Serve()
				_ = channel.Close()
			})
		case "exec":
			var payload struct{ Command string }
			if err := ssh.Unmarshal(request.Payload, &payload); err != nil {
				s.t.Error(err)
			}
			s.mu.Lock()
			s.commands = append(s.commands, payload.Command)
			s.mu.Unlock()
			if s.deafTo == "programs" {
				s.hung <- "programs"
				continue
			}
			_ = request.Reply(s.shell != "broken", nil)
			if s.shell == "broken" {
				continue
			}
			running.Go(func() {
				code := s.runCommand(payload.Command, &process{server: s, out: channel, err: channel.Stderr(),
					closed: closed, conn: conn})
				_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)})) // exit codes are small
				_ = channel.Close()
			})
		default:
			_ = request.Reply(false, nil)
		}
	}
	close(closed)
	_ = channel.Close()
	running.Wait()
}

// runCommand runs a command in the simulated shell and returns the exit code.
func (s *server) runCommand(command string, p *process) int {
	if command == "echo %OS% $PSHOME" {
		answer := map[string]string{
			"cmd":        "Windows_NT $PSHOME\r\n",
			"powershell": "%OS%\r\nC:\\Windows\\System32\\WindowsPowerShell\\v1.0\r\n",
			"bash":       "%OS%\n",
		}[s.shell]
		_, _ = io.WriteString(p.out, answer)
		return 0
	}
	p.args = strings.Fields(command)
	return s.agent(p)
}

// newTarget returns the Target of the server.
func (s *server) newTarget(key sshkey.Key) remote.Target {
	s.started.Do(func() { s.serving.Go(s.acceptConnections) })
	return remote.Target{Instance: "win-1", Namespace: "wmco", Address: "127.0.0.1", Port: s.port,
		User: "Administrator", Key: key}
}

// mustConnect returns a connection that is closed at the end of the test.
func (s *server) mustConnect(d *remote.Dialer, key sshkey.Key) *remote.Connection {
	s.t.Helper()
	c, err := d.Connect(s.t.Context(), s.newTarget(key))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func newKey(t testing.TB) sshkey.Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return parseKey(t, private)
}

func newRSAKey(t testing.TB) sshkey.Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return parseKey(t, private)
}

func parseKey(t testing.TB, private any) sshkey.Key {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshkey.Parse(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// testClock is a fake clock that records the timers.
type testClock struct {
	*clocktesting.FakeClock
	mu   sync.Mutex
	cond *sync.Cond
	set  []time.Duration
}

func newClock() *testClock {
	c := &testClock{FakeClock: clocktesting.NewFakeClock(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *testClock) recordTimer(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = append(c.set, d)
	c.cond.Broadcast()
}

func (c *testClock) NewTimer(d time.Duration) clock.Timer {
	defer c.recordTimer(d)
	return &testTimer{c.FakeClock.NewTimer(d), c}
}

type testTimer struct {
	clock.Timer
	clock *testClock
}

func (t *testTimer) Reset(d time.Duration) bool {
	defer t.clock.recordTimer(d)
	return t.Timer.Reset(d)
}

// passTimer waits until a timer of this duration was set and steps the clock.
func (c *testClock) passTimer(d time.Duration) {
	c.awaitTimer(d)
	c.Step(d)
}

// awaitTimer waits until a timer of this duration was set and removes its record.
func (c *testClock) awaitTimer(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if i := slices.Index(c.set, d); i >= 0 {
			c.set = slices.Delete(c.set, 0, i+1)
			return
		}
		c.cond.Wait()
	}
}

// Limits of tests with a fake clock. Each value is unique, so that passTimer can identify the timer.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 15 * time.Second
	execStartTimeout = 11 * time.Second
	helloTimeout     = 61 * time.Second
	silenceTimeout   = 5 * time.Minute
	stallTimeout     = 31 * time.Second
	endTimeout       = 2 * time.Second
	rebootTimeout    = 62 * time.Second
	idleTimeout      = 63 * time.Second
	keepalive        = 16 * time.Second
)

func fakeDialer() (*remote.Dialer, *testClock) {
	c := newClock()
	return &remote.Dialer{Clock: c, Limits: remote.Limits{
		DialTimeout: dialTimeout, HandshakeTimeout: handshakeTimeout, ExecStartTimeout: execStartTimeout, HelloTimeout: helloTimeout, SilenceTimeout: silenceTimeout,
		SFTPStallTimeout: stallTimeout, EndTimeout: endTimeout, RebootTimeout: rebootTimeout, IdleTimeout: idleTimeout, KeepaliveInterval: keepalive, MaxKeepaliveMisses: 3,
	}}, c
}

// noLeaks fails the test if goroutines remain after the other cleanups.
func noLeaks(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		waitFor(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
}

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("waited in vain for %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond)
	}
}

// inBackground runs f and returns a function that waits for its error.
func inBackground(f func() error) func() error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// expectError checks the reason and the host of an error and the texts that it must contain.
func expectError(t *testing.T, err error, reason remote.Reason, texts ...string) *remote.Error {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("reason %q, want %q: %v", remote.ReasonOf(err), reason, err)
	}
	if e.Host == "" {
		t.Errorf("the error names no host: %v", err)
	}
	if regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(e.Host) + `($|[^\w.])`).MatchString(e.Message) {
		t.Errorf("the message repeats the host %s: %v", e.Host, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
	return e
}

// expectTimeout also checks that a limit passed, and the awaited event.
func expectTimeout(t *testing.T, err error, reason remote.Reason, waiting string) {
	t.Helper()
	var timeout *remote.TimeoutError
	if e := expectError(t, err, reason, waiting); !e.Timeout() || !errors.As(err, &timeout) ||
		!strings.Contains(timeout.Waiting, waiting) {
		t.Errorf("it is not a time-out while waiting for %s: %v", waiting, err)
	}
}

func expectCanceled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) || remote.ReasonOf(err) != "" {
		t.Errorf("error %v, want only that the context was canceled", err)
	}
}
