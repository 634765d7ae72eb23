// Package remote speaks SSH with Windows hosts: it connects under time limits and with pinned host keys, brings the
// agent and its inputs over SFTP, and runs the agent's verbs. The only command line that it ever sends is the agent's
// path and plain words that mean the same to cmd.exe and to PowerShell.
package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// DefaultPort is where SSH servers listen.
const DefaultPort = 22

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
	// NoHostAt says what an address is at which no host can be; empty when one can. Nothing is sent to such an address,
	// also where a name leads there. Nil excludes none.
	NoHostAt func(netip.Addr) string
}

// Dialer makes connections to hosts. Its zero value works.
type Dialer struct {
	// Dial opens a TCP connection and resolves names; it must end when its context does. Nil means net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
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
	if address, err := netip.ParseAddr(target.Address); err == nil {
		if err := target.checkAddress(address); err != nil {
			return nil, err
		}
	}
	raw, err := d.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	if end, err := netip.ParseAddrPort(raw.RemoteAddr().String()); err == nil {
		if err := target.checkAddress(end.Addr()); err != nil {
			_ = raw.Close() // nothing was sent
			return nil, err
		}
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

// checkAddress refuses an address at which no host can be.
func (t Target) checkAddress(address netip.Addr) error {
	if t.NoHostAt == nil {
		return nil
	}
	address = address.Unmap().WithZone("")
	if what := t.NoHostAt(address); what != "" {
		return addressForbidden(t, address, what)
	}
	return nil
}

// dial opens the TCP connection.
func (d *Dialer) dial(ctx context.Context, target Target) (net.Conn, error) {
	address := net.JoinHostPort(target.Address, strconv.Itoa(target.Port))
	dialCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conn net.Conn
	var dialErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, dialErr = d.Dial(dialCtx, "tcp", address)
	}()
	w := newWatch(d.Clock, fmt.Sprintf("a TCP connection to port %d", target.Port), d.Limits.Dial)
	if err := w.until(ctx, done); err != nil {
		go func() {
			if <-done; conn != nil {
				_ = conn.Close()
			}
		}()
		return nil, dialError(target, err)
	}
	if dialErr != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, dialError(target, dialErr)
	}
	return conn, nil
}

// dialError says why there is no TCP connection.
func dialError(target Target, err error) error {
	e := &Error{Host: target.Address, Stage: StageTCP, Err: err}
	var unresolved *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unresolved):
		e.Reason, e.Stage = ReasonNameNotResolved, StageName
		e.Message = fmt.Sprintf("the DNS name does not resolve to an address (%s)", lastPart(unresolved.Err))
		e.Next = "correct the name, or its DNS record as the cluster's nodes see it"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Reason = ReasonConnectionTimedOut
		e.Message = fmt.Sprintf("no answer on TCP port %d (%s)", target.Port, causeOf(err))
		e.Next = "check that the host runs, and that firewalls and routes let the cluster's nodes reach that port"
	default:
		e.Reason = ReasonUnreachable
		e.Message = fmt.Sprintf("no TCP connection to port %d (%s)", target.Port, causeOf(err))
		e.Next = "check the address, and that the OpenSSH server runs on the host and its firewall lets that port in"
	}
	return e
}

// causeOf returns the innermost text of a network error, without addresses and operations.
func causeOf(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// lastPart is what stands after the last colon: the cause without the resolver's sockets, whose ports differ each time.
func lastPart(text string) string {
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
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
