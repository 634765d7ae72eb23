// Package remote connects to Windows hosts over SSH with pinned host keys and time limits. It copies the agent and
// its input files over SFTP and runs agent commands. It sends no command line other than the agent's path and plain
// words that cmd.exe and PowerShell interpret alike, and one echo command that identifies the shell.
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

// DefaultPort is the default port of SSH servers.
const DefaultPort = nodespec.SSHPort

// Target is a host to connect to.
type Target struct {
	// Instance and Namespace identify the WindowsInstance.
	Instance, Namespace string
	// Address is an IP address or DNS name as written by the user.
	Address string
	// Port is the TCP port. Zero means DefaultPort.
	Port int
	// User is the Windows user that logs in.
	User string
	// Key is the operator's private key.
	Key sshkey.Key
	// HostKey is the pinned host key; nil at the first contact.
	HostKey *HostKey
	// Expected are the fingerprints accepted at the first contact. If empty, any host key is accepted, and the caller
	// pins the key.
	Expected []string
	// NoHostAt returns a description of an address that cannot belong to a host, and an empty string for all other
	// addresses. The operator sends nothing to such an address and uses only the remaining addresses of a DNS name.
	// If nil, no address is excluded.
	NoHostAt func(netip.Addr) string
	// LastReachedAddress is the address used by the last successful connection, or empty. It is dialed first while
	// the DNS name resolves to it.
	LastReachedAddress string
}

// Dialer connects to hosts. The zero value is ready to use.
type Dialer struct {
	// Dial opens a TCP connection and must return when its context ends. Nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp returns the addresses of a DNS name. Nil means the resolver of the operating system, or, with a custom
	// Dial, that Dial resolves names itself.
	LookUp func(ctx context.Context, name string) ([]string, error)
	// Clock measures all limits. Nil means the real clock.
	Clock clock.WithTicker
	// Limits are the time limits for a host.
	Limits Limits
	// LegacyAlgorithms are additionally allowed SSH algorithms, as returned by ParseLegacyAlgorithms. Unknown names
	// are ignored.
	LegacyAlgorithms []string
	// Traffic counts connections, sessions and bytes sent to hosts. Nil disables counting.
	Traffic Traffic
	// Rand is the random source for names of temporary files. Nil means crypto/rand.
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

// Connect dials the host, checks the host key and logs in. It returns an *Error or the context's cause.
func (d *Dialer) Connect(ctx context.Context, target Target) (*Connection, error) {
	d = d.withDefaults()
	if target.Port == 0 {
		target.Port = DefaultPort
	}
	if target.Key.Signer() == nil {
		return nil, &Error{Reason: ReasonAuthenticationFailed, Host: target.Address,
			Message: "the operator has no private key for the login", Next: "create the Secret cloud-private-key"}
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
	conn.discardGreeting()
	d.Traffic.Connected()
	return newConnection(d, target, conn, client, h.presentedHostKey()), nil
}

// handshake is one SSH handshake and its progress.
type handshake struct {
	target Target
	conn   *monitoredConn

	mu      sync.Mutex
	hostKey *HostKey // presented by the host
	refused error    // the reason for rejecting the host key
	trusted bool     // the host key was accepted: login begins
	offered bool     // the operator's key was offered to the host
}

// run performs the handshake within its limit.
func (h *handshake) run(ctx context.Context, d *Dialer) (*ssh.Client, error) {
	config, err := h.clientConfig(d)
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
	err = newWatch(d.Clock, "", d.Limits.HandshakeTimeout).waitFor(ctx, done)
	if err != nil {
		// Closing the connection ends the handshake at any stage.
		_ = h.conn.Close()
		<-done
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, h.withStage(h.timeoutError(d.Limits.HandshakeTimeout))
	}
	if sshErr != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, h.withStage(h.handshakeError(sshErr))
	}
	return client, nil
}

func (h *handshake) clientConfig(d *Dialer) (*ssh.ClientConfig, error) {
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
		// A later key exchange on this connection must present the key of the first one.
		err = checkHostKey(h.hostKey, presented)
	} else if err = h.target.checkHostKey(presented); err == nil {
		err = checkStrength(key)
	}
	if err != nil {
		h.refused = err
		return err
	}
	h.hostKey, h.trusted = &presented, true
	return nil
}

func (h *handshake) presentedHostKey() HostKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *h.hostKey
}

// timeoutError returns the error for the part of the handshake that timed out.
func (h *handshake) timeoutError(limit time.Duration) error {
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
		Message: fmt.Sprintf("TCP port %d is open but the SSH server does not respond (%v)", h.target.Port, timeout),
		Next:    "check that the host is not overloaded, and restart the service sshd"}
}
