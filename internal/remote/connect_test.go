package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
)

func TestConnect(t *testing.T) {
	t.Run("at the first contact any host key is taken and told", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		c := s.mustConnect(&remote.Dialer{}, key)
		if got := c.HostKey(); got.Type != "ssh-ed25519" || !strings.HasPrefix(got.Fingerprint(), "SHA256:") {
			t.Errorf("host key %+v", got)
		}
		if c.Address() != "127.0.0.1" {
			t.Errorf("address %s", c.Address())
		}
		if c.Err() != nil {
			t.Errorf("a living connection has the error %v", c.Err())
		}
		c.Close()
		if !errors.Is(c.Err(), remote.ErrClosed) {
			t.Errorf("after Close: %v", c.Err())
		}
		c.Close()
	})
	t.Run("a pinned host key is asked for among several", func(t *testing.T) {
		key := newKey(t)
		s := newServer(t, key)
		second := newRSAKey(t)
		s.config.AddHostKey(second.Signer())
		target := s.newTarget(key)
		public := second.Signer().PublicKey()
		target.HostKey = &remote.HostKey{Type: public.Type(), Data: public.Marshal()}
		c, err := (&remote.Dialer{}).Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !c.HostKey().Equal(*target.HostKey) {
			t.Errorf("host key %s", c.HostKey().Fingerprint())
		}
	})
	t.Run("an RSA key logs in with SHA-2", func(t *testing.T) {
		key := newRSAKey(t)
		s := newServer(t, key)
		s.config.PublicKeyAuthAlgorithms = []string{ssh.KeyAlgoRSASHA256}
		s.mustConnect(&remote.Dialer{}, key)
	})
	t.Run("a banner and lines before the identification do no harm", func(t *testing.T) {
		key := newKey(t)
		s := newServer(t, key)
		s.preamble = "Authorized use only\r\n\x1b[31mSSH is watched\r\n"
		s.config.BannerCallback = func(ssh.ConnMetadata) string { return strings.Repeat("Welcome\x07\r\n", 1000) }
		s.mustConnect(&remote.Dialer{}, key)
	})
}

// each cause of an unreachable host has its own reason.
func TestConnect_ReasonForEachUnreachableHost(t *testing.T) {
	refused := func(t *testing.T) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		_, err = net.Dial("tcp", listener.Addr().String())
		return err
	}
	operation := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err    error
		reason remote.Reason
		texts  []string
	}{
		"a name that does not resolve": {operation(&net.DNSError{Err: "no such host", Name: "win", IsNotFound: true}),
			remote.ReasonNameNotResolved, []string{"win.example", "no such host"}},
		"a DNS server that does not answer": {operation(&net.DNSError{Err: "i/o timeout", Name: "win", IsTimeout: true}),
			remote.ReasonNameNotResolved, []string{"win.example", "timeout"}},
		"a closed port": {refused(t), remote.ReasonUnreachable, []string{"port 22", "refused", "OpenSSH"}},
		"no route": {operation(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
			remote.ReasonUnreachable, []string{"no route"}},
		"a kernel that gives up": {operation(os.NewSyscallError("connect", syscall.ETIMEDOUT)),
			remote.ReasonConnectionTimedOut, []string{"port 22", "timed out", "firewalls"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &remote.Dialer{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, c.err }}
			_, err := d.Connect(t.Context(), remote.Target{Address: "win.example", User: "Administrator", Key: newKey(t)})
			expectError(t, err, c.reason, append(c.texts, "host win.example")...)
		})
	}
	t.Run("a host that drops packets", func(t *testing.T) {
		noLeaks(t)
		d, clock := fakeDialer()
		d.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		wait := inBackground(func() error {
			_, err := d.Connect(t.Context(), remote.Target{Address: "10.0.0.1", Key: newKey(t)})
			return err
		})
		clock.passTimer(dialTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "a TCP connection to port 22")
	})
	t.Run("the operator stops while it dials", func(t *testing.T) {
		noLeaks(t)
		ctx, cancel := context.WithCancel(t.Context())
		d := &remote.Dialer{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		_, err := d.Connect(ctx, remote.Target{Address: "10.0.0.1", Key: newKey(t)})
		expectCanceled(t, err)
	})
	t.Run("there is no key", func(t *testing.T) {
		_, err := (&remote.Dialer{}).Connect(t.Context(), remote.Target{Address: "10.0.0.1"})
		expectError(t, err, remote.ReasonAuthenticationFailed, "cloud-private-key")
	})
}

// setServer sets a dialer that connects to a custom protocol implementation.
func setServer(t *testing.T, d *remote.Dialer, serve func(net.Conn)) {
	d.Dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(far)
		}()
		t.Cleanup(func() {
			_ = far.Close()
			_ = near.Close()
			<-done
		})
		return near, nil
	}
}

func TestConnect_NonSSHServerRejected(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		reason  remote.Reason
		text    string
	}{
		"a web server":           {"HTTP/1.1 400 Bad Request\r\n\r\n", remote.ReasonNotSSH, "not an SSH server"},
		"a mail server":          {"220 mail.example ESMTP\r\n", remote.ReasonNotSSH, "not an SSH server"},
		"a stream without lines": {strings.Repeat("x", 5000), remote.ReasonNotSSH, "not an SSH server"},
		"a TLS alert":            {"\x15\x03\x01\x00\x02\x02\x46", remote.ReasonNotSSH, "not an SSH server"},
		"an SSH 1 server":        {"SSH-1.5-old\r\n", remote.ReasonNotSSH, "version 1"},
		"garbage after the hello": {"SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff\xff\xff", remote.ReasonNotSSH,
			"violates the SSH protocol"},
		"nothing at all": {"", remote.ReasonConnectionLost, "ended the connection"},
		"an SSH hello and nothing": {"SSH-2.0-OpenSSH_for_Windows_8.1\r\n", remote.ReasonConnectionLost,
			"ended the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			d := &remote.Dialer{}
			setServer(t, d, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1024))
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				_, _ = io.WriteString(conn, c.message)
				_ = conn.Close()
			})
			_, err := d.Connect(t.Context(), remote.Target{Address: "10.0.0.1", Key: newKey(t)})
			expectError(t, err, c.reason, c.text)
		})
	}
}

func TestConnect_HangingHandshakeTimesOut(t *testing.T) {
	t.Run("before they identify themselves", func(t *testing.T) {
		noLeaks(t)
		d, clock := fakeDialer()
		setServer(t, d, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		wait := inBackground(func() error {
			_, err := d.Connect(t.Context(), remote.Target{Address: "10.0.0.1", Key: newKey(t)})
			return err
		})
		clock.passTimer(handshakeTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH identification")
	})
	t.Run("in the key exchange", func(t *testing.T) {
		noLeaks(t)
		d, clock := fakeDialer()
		written := make(chan struct{})
		setServer(t, d, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = io.WriteString(conn, "SSH-2.0-hung\r\n")
			close(written)
			_, _ = io.Copy(io.Discard, conn)
		})
		wait := inBackground(func() error {
			_, err := d.Connect(t.Context(), remote.Target{Address: "10.0.0.1", Key: newKey(t)})
			return err
		})
		<-written
		clock.passTimer(handshakeTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH key exchange")
	})
	login := func(t *testing.T) (*server, *remote.Dialer, *testClock, remote.Target) {
		key := newKey(t)
		s := newServer(t, key)
		s.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			s.hangRequest("login", nil)
			return nil, errors.New("too late")
		}
		d, clock := fakeDialer()
		return s, d, clock, s.newTarget(key)
	}
	t.Run("in the login", func(t *testing.T) {
		noLeaks(t)
		s, d, clock, target := login(t)
		wait := inBackground(func() error {
			_, err := d.Connect(t.Context(), target)
			return err
		})
		<-s.hung
		clock.passTimer(handshakeTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH login of user Administrator")
	})
	t.Run("until the operator stops", func(t *testing.T) {
		noLeaks(t)
		s, d, _, target := login(t)
		ctx, cancel := context.WithCancel(t.Context())
		wait := inBackground(func() error {
			_, err := d.Connect(ctx, target)
			return err
		})
		<-s.hung
		cancel()
		expectCanceled(t, wait())
	})
}

//
func TestConnect_RejectedLoginReported(t *testing.T) {
	t.Run("a key that is not authorized", func(t *testing.T) {
		s := newServer(t, newKey(t))
		other := newKey(t)
		_, err := (&remote.Dialer{}).Connect(t.Context(), s.newTarget(other))
		expectError(t, err, remote.ReasonAuthenticationFailed, "cloud-private-key", "user Administrator", "host 127.0.0.1",
			other.Fingerprint(), "administrators_authorized_keys", "Deny access to this computer from the network")
	})
	t.Run("another user", func(t *testing.T) {
		key := newKey(t)
		s := newServer(t, key)
		target := s.newTarget(key)
		target.User = "Alice"
		_, err := (&remote.Dialer{}).Connect(t.Context(), target)
		expectError(t, err, remote.ReasonAuthenticationFailed, "user Alice")
	})
	t.Run("a server that wants passwords", func(t *testing.T) {
		key := newKey(t)
		s := newServer(t, key)
		s.config.PublicKeyCallback = nil
		s.config.PasswordCallback = func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, errors.New("no") }
		_, err := (&remote.Dialer{}).Connect(t.Context(), s.newTarget(key))
		expectError(t, err, remote.ReasonAuthenticationFailed, "does not allow user Administrator to log in with a key",
			"PubkeyAuthentication")
	})
	t.Run("a server that takes RSA keys only with SHA-1", func(t *testing.T) {
		key := newRSAKey(t)
		s := newServer(t, key)
		s.config.PublicKeyAuthAlgorithms = []string{ssh.KeyAlgoRSA}
		_, err := (&remote.Dialer{}).Connect(t.Context(), s.newTarget(key))
		expectError(t, err, remote.ReasonNoCommonAlgorithm, "ssh-rsa", "Ed25519")
		s.mustConnect(&remote.Dialer{LegacyAlgorithms: []string{ssh.KeyAlgoRSA}}, key)
	})
}

func TestConnect_ChangedHostKeyRejected(t *testing.T) {
	key := newKey(t)
	s := newServer(t, key)
	presented := s.mustConnect(&remote.Dialer{}, key).HostKey()
	for name, pinned := range map[string]ssh.PublicKey{
		"to another of its type": newKey(t).Signer().PublicKey(),
		"to another type":        newRSAKey(t).Signer().PublicKey(),
	} {
		t.Run(name, func(t *testing.T) {
			target := s.newTarget(key)
			target.HostKey = &remote.HostKey{Type: pinned.Type(), Data: pinned.Marshal()}
			_, err := (&remote.Dialer{}).Connect(t.Context(), target)
			expectError(t, err, remote.ReasonHostKeyChanged, presented.Fingerprint(), ssh.FingerprintSHA256(pinned),
				"kubectl annotate windowsinstance win-1 -n wmco", "windowsmachineconfig.openshift.io/accept-host-key="+
					presented.Fingerprint())
			var changed *remote.HostKeyChangedError
			if !errors.As(err, &changed) || !changed.Presented.Equal(presented) {
				t.Errorf("the error does not carry the new key: %#v", changed)
			}
		})
	}
}

func TestConnect_LegacyAlgorithmsRejectedByDefault(t *testing.T) {
	for name, configure := range map[string]func(*ssh.ServerConfig){
		ssh.InsecureKeyExchangeDH14SHA1: func(c *ssh.ServerConfig) {
			c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1}
		},
		ssh.InsecureCipherAES128CBC: func(c *ssh.ServerConfig) { c.Ciphers = []string{ssh.InsecureCipherAES128CBC} },
		ssh.HMACSHA1: func(c *ssh.ServerConfig) {
			c.Ciphers, c.MACs = []string{ssh.CipherAES128CTR}, []string{ssh.HMACSHA1}
		},
	} {
		t.Run(name+" is refused unless it is allowed", func(t *testing.T) {
			key := newKey(t)
			s := newServer(t, key)
			configure(s.config)
			_, err := (&remote.Dialer{}).Connect(t.Context(), s.newTarget(key))
			expectError(t, err, remote.ReasonNoCommonAlgorithm, name, "update OpenSSH")
			s.mustConnect(&remote.Dialer{LegacyAlgorithms: []string{name, "unknown"}}, key)
		})
	}
}

func TestConnection_LossDetected(t *testing.T) {
	t.Run("by the host", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		c := s.mustConnect(&remote.Dialer{}, key)
		s.cutConnections()
		<-c.Done()
		expectError(t, c.Err(), remote.ReasonConnectionLost)
	})
	t.Run("without a word", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		s.deafTo = "keepalives"
		d, clock := fakeDialer()
		c := s.mustConnect(d, key)
		for range 4 {
			clock.passTimer(keepalive)
		}
		<-c.Done()
		expectTimeout(t, c.Err(), remote.ReasonConnectionLost, "a response to SSH keepalives")
	})
	t.Run("not while the host answers", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		d, clock := fakeDialer()
		c := s.mustConnect(d, key)
		for range 8 {
			clock.awaitTimer(keepalive)
			// Data arrives between two keepalives.
			if _, err := c.Exists(t.Context(), `C:\k`); err != nil {
				t.Fatal(err)
			}
			clock.Step(keepalive)
		}
		if c.Err() != nil {
			t.Error(c.Err())
		}
	})
}
