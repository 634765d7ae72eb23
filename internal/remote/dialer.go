// Package remote speaks SSH with Windows hosts: it connects under time limits and with pinned host keys, brings the
// agent and its inputs over SFTP, and runs the agent's verbs. The only command line that it ever sends is the agent's
// path and plain words that mean the same to cmd.exe and to PowerShell.
package remote

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// DefaultPort is the port of SSH servers.
const DefaultPort = nodespec.SSHPort

// Target is a host to connect to.
type Target struct {
	// Instance and Namespace name the WindowsInstance.
	Instance, Namespace string
	// Address is an IP address or DNS name, as the user wrote it.
	Address string
	// Port is DefaultPort when 0.
	Port int
	// User is the Windows user to log in as.
	User string
	// Key is the operator's private key.
	Key sshkey.Key
	// HostKey is the pinned host key; nil at the first contact.
	HostKey *HostKey
	// Expected are the fingerprints of which the host must show one at the first contact. Without any, whatever it shows
	// is taken (and then pinned by the caller).
	Expected []string
	// NoHostAt describes an address that cannot belong to a host; empty for all other addresses. Nothing is sent to such an
	// address. If a DNS name has others too, the operator uses only those. Nil excludes none.
	NoHostAt func(netip.Addr) string
	// LastReachedAddress is the address at which the host was reached last; empty if it was not. It is the first to be dialed while
	// the DNS name has it.
	LastReachedAddress string
}

// Dialer makes connections to hosts. Its zero value works.
type Dialer struct {
	// Dial opens a TCP connection; it must end when its context does. Nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp returns the addresses of a DNS name. Nil means the resolver of the operating system, or, with another Dial,
	// that Dial resolves names itself.
	LookUp func(ctx context.Context, name string) ([]string, error)
	// Clock measures all limits; nil means the real one.
	Clock clock.WithTicker
	// Limits are how long a host may take.
	Limits Limits
	// LegacyAlgorithms are SSH algorithms that are allowed besides the modern ones, as ParseLegacyAlgorithms reads them.
	// Others are ignored.
	LegacyAlgorithms []string
	// Traffic counts what goes to hosts; nil counts nothing.
	Traffic Traffic
	// Rand makes names of temporary files; nil means crypto/rand.
	Rand io.Reader
}

func (d *Dialer) withDefaults() *Dialer {
	out := *d
	out.Limits = d.Limits.withDefaults()
	if out.Dial == nil {
		out.Dial = (&net.Dialer{}).DialContext
		if out.LookUp == nil {
			out.LookUp = net.DefaultResolver.LookupHost
		}
	}
	if out.Clock == nil {
		out.Clock = clock.RealClock{}
	}
	if out.Traffic == nil {
		out.Traffic = uncounted{}
	}
	if out.Rand == nil {
		out.Rand = rand.Reader
	}
	return &out
}

// Connect dials, checks the host key and logs in. Its errors are *Error, or the context's cause.
func (d *Dialer) Connect(ctx context.Context, target Target) (*Connection, error) {
	d = d.withDefaults()
	if target.Port == 0 {
		target.Port = DefaultPort
	}
	if target.Key.Signer() == nil {
		return nil, &Error{Reason: ReasonAuthenticationFailed, Host: target.Address,
			Message: "there is no private key to log in with", Next: "create the Secret cloud-private-key"}
	}
	raw, err := d.dialTarget(ctx, target)
	if err != nil {
		return nil, err
	}
	conn := &monitoredConn{Conn: raw, traffic: d.Traffic}
	h := &handshake{target: target, conn: conn}
	client, err := h.run(ctx, d)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	conn.settle()
	d.Traffic.Connected()
	return newConnection(d, target, conn, client, h.presented()), nil
}

// handshake is one SSH handshake and how far it came.
type handshake struct {
	target Target
	conn   *monitoredConn

	mu      sync.Mutex
	hostKey *HostKey // presented by the host
	refused error    // why the host key is not the right one
	trusted bool     // the host key is the right one: login begins
	offered bool     // our key was offered to the host
}

// run does the handshake within its limit.
func (h *handshake) run(ctx context.Context, d *Dialer) (*ssh.Client, error) {
	config, err := h.config(d)
	if err != nil {
		return nil, &Error{Reason: ReasonAuthenticationFailed, Host: h.target.Address, Err: err,
			Message: fmt.Sprintf("the private key cannot sign a login: %v", err),
			Next:    "replace the key in Secret cloud-private-key"}
	}
	var client *ssh.Client
	var sshErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, channels, requests, err := ssh.NewClientConn(h.conn, h.target.Address, config)
		if sshErr = err; err == nil {
			client = ssh.NewClient(conn, channels, requests)
		}
	}()
	err = newWatch(d.Clock, "", d.Limits.Handshake).until(ctx, done)
	if err != nil {
		// Closing the connection ends the handshake wherever it is.
		_ = h.conn.Close()
		<-done
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, h.staged(h.timeout(d.Limits.Handshake))
	}
	if sshErr != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, h.staged(h.failure(sshErr))
	}
	return client, nil
}

func (h *handshake) config(d *Dialer) (*ssh.ClientConfig, error) {
	offer := offeredAlgorithms(d.LegacyAlgorithms, h.target.HostKey)
	signer, err := offer.loginSigner(h.target.Key.Signer())
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: offer.keyExchanges, Ciphers: offer.ciphers, MACs: offer.macs},
		HostKeyAlgorithms: offer.hostKeys,
		HostKeyCallback:   h.checkHostKey,
		User:              h.target.User,
		ClientVersion:     "SSH-2.0-WMCO",
		BannerCallback:    func(string) error { return nil },
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.offered = true
			return []ssh.Signer{signer}, nil
		})},
	}, nil
}

// checkHostKey is called at each key exchange.
func (h *handshake) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	presented := hostKeyOf(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if h.hostKey != nil {
		// A later key exchange on this connection must show the key that the first one did.
		err = checkHostKey(h.hostKey, presented)
	} else if err = h.target.admits(presented); err == nil {
		err = checkStrength(key)
	}
	if err != nil {
		h.refused = err
		return err
	}
	h.hostKey, h.trusted = &presented, true
	return nil
}

func (h *handshake) presented() HostKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *h.hostKey
}

// timeout names the part of the handshake that was waited for.
func (h *handshake) timeout(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := "the SSH key exchange"
	switch {
	case h.trusted:
		waiting = fmt.Sprintf("the SSH login of user %s", h.target.User)
	case h.conn.greetingKind() != greetingSSH:
		waiting = "the SSH identification"
	}
	timeout := &TimeoutError{Waiting: waiting, Limit: limit}
	return &Error{Reason: ReasonConnectionTimedOut, Host: h.target.Address, Err: timeout,
		Message: fmt.Sprintf("TCP port %d is open but the SSH server does not answer (%v)", h.target.Port, timeout),
		Next:    "check that the host is not overloaded, and restart its service sshd"}
}
