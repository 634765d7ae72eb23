package remote_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// countLogins counts all login attempts, from the first message of an attempt.
func (s *server) countLogins() *atomic.Int32 {
	tried := &atomic.Int32{}
	s.config.AuthLogCallback = func(ssh.ConnMetadata, string, error) { tried.Add(1) }
	return tried
}

func hostKey(public ssh.PublicKey) *remote.HostKey {
	return &remote.HostKey{Type: public.Type(), Data: public.Marshal()}
}

func TestHostKey_NoLoginIfKeyChanged(t *testing.T) {
	key := newKey(t)
	s := newServer(t, key)
	tried := s.countLogins()
	target := s.newTarget(key)
	target.HostKey = hostKey(newKey(t).Signer().PublicKey())
	for range 3 {
		_, err := (&remote.Dialer{}).Connect(t.Context(), target)
		expectError(t, err, remote.ReasonHostKeyChanged)
	}
	if tried.Load() != 0 {
		t.Errorf("the operator has tried %d times to log in", tried.Load())
	}
	s.mustConnect(&remote.Dialer{}, key)
	if tried.Load() == 0 {
		t.Error("logins are not counted")
	}
}

func TestHostKey_OnlyExpectedKeyAccepted(t *testing.T) {
	key := newKey(t)
	s := newServer(t, key)
	tried := s.countLogins()
	shown := s.mustConnect(&remote.Dialer{}, key).HostKey()
	other := ssh.FingerprintSHA256(newKey(t).Signer().PublicKey())
	connect := func(t *testing.T, change func(*remote.Target)) error {
		target := s.newTarget(key)
		change(&target)
		c, err := (&remote.Dialer{}).Connect(t.Context(), target)
		if err == nil {
			c.Close()
		}
		return err
	}
	t.Run("lets in the host that shows one of those that were announced", func(t *testing.T) {
		if err := connect(t, func(target *remote.Target) {
			target.Expected = []string{other, shown.Fingerprint()}
		}); err != nil {
			t.Error(err)
		}
	})
	t.Run("keeps away every other one, before any login", func(t *testing.T) {
		before := tried.Load()
		err := connect(t, func(target *remote.Target) { target.Expected = []string{other} })
		expectError(t, err, remote.ReasonHostKeyUnexpected, shown.Fingerprint(), other, "ssh-ed25519",
			"windowsmachineconfig.openshift.io/expected-host-key")
		var unexpected *remote.HostKeyUnexpectedError
		if !errors.As(err, &unexpected) || !unexpected.Presented.Equal(shown) {
			t.Errorf("the error does not carry the key: %v", err)
		}
		if tried.Load() != before {
			t.Error("the operator has tried to log in")
		}
	})
	t.Run("is reported in bounded words, however many there are", func(t *testing.T) {
		err := connect(t, func(target *remote.Target) {
			target.Expected = strings.Split(strings.Repeat(other+" ", 1000)+other, " ")
		})
		expectError(t, err, remote.ReasonHostKeyUnexpected, "one of 996 more")
		fitForStatus(t, err)
	})
	t.Run("says nothing any more once a key is pinned", func(t *testing.T) {
		err := connect(t, func(target *remote.Target) { target.Expected, target.HostKey = []string{other}, &shown })
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("counts for a connection that the pool has, too", func(t *testing.T) {
		pool := remote.NewPool(&remote.Dialer{})
		t.Cleanup(pool.CloseAll)
		target := s.newTarget(key)
		if _, err := pool.Get(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		target.Expected = []string{other}
		_, err := pool.Get(t.Context(), target)
		expectError(t, err, remote.ReasonHostKeyUnexpected)
	})
}

func TestHostKey_ShortKeyRejected(t *testing.T) {
	key := newKey(t)
	s := newServer(t, key)
	short, err := rsa.GenerateKey(rand.Reader, 1024) // the test needs a key that is too short
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(short)
	if err != nil {
		t.Fatal(err)
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: s.config.PublicKeyCallback}
	s.config.AddHostKey(signer)
	tried := s.countLogins()
	for name, pinned := range map[string]*remote.HostKey{"at the first contact": nil,
		"nor one that was pinned before": hostKey(signer.PublicKey())} {
		t.Run(name, func(t *testing.T) {
			target := s.newTarget(key)
			target.HostKey = pinned
			_, err := (&remote.Dialer{}).Connect(t.Context(), target)
			expectError(t, err, remote.ReasonNoCommonAlgorithm, "1024 bits", "ssh-keygen -A")
		})
	}
	if tried.Load() != 0 {
		t.Error("the operator has tried to log in")
	}
}

// elsewhere is a connection that reports a different remote address.
type elsewhere struct {
	net.Conn
	end string
}

func (c elsewhere) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.end))
}

func TestConnect_NothingSentToReservedAddress(t *testing.T) {
	none := func(address netip.Addr) string {
		if netip.MustParsePrefix("172.30.0.0/16").Contains(address) || address.IsLoopback() {
			return "in the network of Services"
		}
		return ""
	}
	for name, c := range map[string]struct {
		address, end string
		dialed       bool
	}{
		"an address":                         {"172.30.0.1", "", false},
		"a name that leads there":            {"win.example.com", "172.30.0.1:22", true},
		"a name that leads to this machine":  {"win.example.com", "[::1]:22", true},
		"an IPv4 address in another writing": {"win.example.com", "[::ffff:172.30.0.1]:22", true},
	} {
		t.Run(name, func(t *testing.T) {
			received := make(chan int64, 1)
			dialed := false
			d := &remote.Dialer{Dial: func(context.Context, string, string) (net.Conn, error) {
				dialed = true
				near, far := net.Pipe()
				go func() {
					n, _ := far.Read(make([]byte, 100))
					received <- int64(n)
				}()
				return elsewhere{near, c.end}, nil
			}}
			_, err := d.Connect(t.Context(), remote.Target{Address: c.address, User: "Administrator",
				Key: newKey(t), NoHostAt: none})
			expectError(t, err, remote.ReasonAddressNotAllowed, "host "+c.address, "cannot belong to a Windows host", "Services")
			if dialed != c.dialed {
				t.Errorf("dialed: %t", dialed)
			}
			if dialed {
				if n := <-received; n > 0 {
					t.Errorf("%d bytes were sent", n)
				}
			}
		})
	}
}
