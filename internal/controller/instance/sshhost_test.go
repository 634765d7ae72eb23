package instance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// keysFile is the file of Windows' OpenSSH with the authorized keys of administrators.
const keysFile = "/C:/ProgramData/ssh/administrators_authorized_keys"

// sshHost is an SSH server with SFTP that accepts the keys in keysFile, and runs no programs.
type sshHost struct {
	t        *testing.T
	listener net.Listener
	files    sftp.Handlers
	own      *sftp.Client
	serving  sync.WaitGroup

	mu      sync.Mutex
	hostKey ssh.Signer
	off     bool
	logins  []string // fingerprints, in order
	execs   int
	tries   int // login attempts of any kind
}

func newSSHHost(t *testing.T, accepted ...string) *sshHost {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, key := newPrivateKey(t)
	h := &sshHost{t: t, listener: listener, hostKey: key.Signer(), files: sftp.InMemHandler()}
	server, own := net.Pipe()
	h.serving.Go(func() { _ = sftp.NewRequestServer(server, h.files).Serve() })
	if h.own, err = sftp.NewClientPipe(own, own); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/C:", "/C:/ProgramData", "/C:/ProgramData/ssh"} {
		if err := h.own.Mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	h.authorizeKeys(accepted...)
	h.serving.Go(h.serveConnections)
	t.Cleanup(func() {
		_ = listener.Close()
		_ = h.own.Close()
		_ = server.Close()
		h.serving.Wait()
	})
	return h
}

// authorizeKeys replaces the authorized keys of the host.
func (h *sshHost) authorizeKeys(authorized ...string) {
	h.t.Helper()
	file, err := h.own.Create(keysFile)
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = io.WriteString(file, strings.Join(authorized, "\n")+"\n")
	if err = errors.Join(err, file.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// switchOff makes port 22 refuse connections.
func (h *sshHost) switchOff(off bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.off = off
}

// exchangeHostKey replaces the host key, as a reinstallation does.
func (h *sshHost) exchangeHostKey() {
	_, key := newPrivateKey(h.t)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hostKey = key.Signer()
}

func (h *sshHost) dialHost(ctx context.Context, network string) (net.Conn, error) {
	h.mu.Lock()
	off := h.off
	h.mu.Unlock()
	if off {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return new(net.Dialer).DialContext(ctx, network, h.listener.Addr().String())
}

// readAuthorizedKeys returns the content of keysFile.
func (h *sshHost) readAuthorizedKeys() ([]byte, error) {
	file, err := h.own.Open(keysFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}

func (h *sshHost) checkLogin(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	content, err := h.readAuthorizedKeys()
	if err != nil || !bytes.Contains(content, bytes.TrimSpace(ssh.MarshalAuthorizedKey(key))) {
		return nil, errors.New("not authorized")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logins = append(h.logins, ssh.FingerprintSHA256(key))
	return &ssh.Permissions{}, nil
}

// countAttempt counts login attempts.
func (h *sshHost) countAttempt(ssh.ConnMetadata, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries++
}

// loginAttempts returns the number of login attempts.
func (h *sshHost) loginAttempts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries
}

func (h *sshHost) serveConnections() {
	for {
		raw, err := h.listener.Accept()
		if err != nil {
			return
		}
		config := &ssh.ServerConfig{PublicKeyCallback: h.checkLogin, AuthLogCallback: h.countAttempt}
		h.mu.Lock()
		config.AddHostKey(h.hostKey)
		h.mu.Unlock()
		h.serving.Go(func() {
			defer func() { _ = raw.Close() }()
			_, channels, requests, err := ssh.NewServerConn(raw, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for channel := range channels {
				h.serveSession(channel)
			}
		})
	}
}

func (h *sshHost) serveSession(offered ssh.NewChannel) {
	channel, requests, err := offered.Accept()
	if err != nil {
		return
	}
	h.serving.Go(func() {
		for request := range requests {
			isFiles := request.Type == "subsystem"
			_ = request.Reply(isFiles, nil)
			if isFiles {
				h.serving.Go(func() { _ = sftp.NewRequestServer(channel, h.files).Serve() })
				continue
			}
			h.mu.Lock()
			h.execs++
			h.mu.Unlock()
		}
	})
}

// loginsAndExecs returns the keys that logged in, and the number of requested programs.
func (h *sshHost) loginsAndExecs() (logins []string, execs int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.logins), h.execs
}
