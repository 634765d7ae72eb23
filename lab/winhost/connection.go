package winhost

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Defaults of OpenSSH for Windows.
const (
	serverVersion   = "SSH-2.0-OpenSSH_for_Windows_8.1"
	maxSessions     = 10 // open sessions of one connection
	maxAuthTries    = 6
	loginGraceTime  = 2 * time.Minute
	keepMoreRequest = "no-more-sessions@openssh.com"
)

// MaxStartups is the sshd_config setting of that name. From Begin connections without a login on, RatePercent of the
// new connections are dropped. The rate rises to all connections at Full.
type MaxStartups struct{ Begin, RatePercent, Full int }

// shouldDrop reports whether a new connection is dropped while others wait for a login; percent is a random number between 0 and 99.
func (m MaxStartups) shouldDrop(waiting, percent int) bool {
	switch {
	case m.Begin == 0 || waiting < m.Begin:
		return false
	case waiting >= m.Full || m.RatePercent >= 100:
		return true
	}
	chance := (100-m.RatePercent)*(waiting-m.Begin)/(m.Full-m.Begin) + m.RatePercent
	return percent < chance
}

// connection is one SSH connection after the login.
type connection struct {
	host *Host
	wire *wireConn
	ssh  *ssh.ServerConn
	// ctx is done when the connection ends.
	ctx context.Context

	mu       sync.Mutex
	sessions int
}

// serveConnection serves one connection until its end.
func (h *Host) serveConnection(ctx context.Context, wire *wireConn) {
	if !h.machine.IsPortAllowed(22) {
		return // dropped by the machine's firewall
	}
	waiting := int(h.logins.Add(1)) - 1
	loggedIn := sync.OnceFunc(func() { h.logins.Add(-1) })
	defer loggedIn()
	if h.options.MaxStartups.shouldDrop(waiting, h.randomPercent()) {
		h.recordEntry(KindSSHD, "dropped a connection past MaxStartups")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.faults.holdWhileActive(wire.open, HangBeforeBanner) != nil {
		return
	}
	if h.faults.delayWhileActive(wire.open, h.clock, SlowBanner) != nil {
		return
	}
	inTime := h.limitLogin(ctx, wire)
	server, channels, requests, err := h.performHandshake(wire)
	inTime()
	if err != nil {
		h.recordEntry(KindLogin, fmt.Sprintf("failed from %s: %v", wire.RemoteAddr(), err))
		return
	}
	loggedIn()
	wire.loggedIn.Store(true)
	h.recordEntry(KindLogin, fmt.Sprintf("accepted publickey of %s from %s", server.User(), wire.RemoteAddr()))
	c := &connection{host: h, wire: wire, ssh: server, ctx: ctx}
	go func() {
		_ = server.Wait() // the reason does not matter
		cancel()
	}()
	go c.answerRequests(requests)
	c.acceptSessions(channels)
}

// limitLogin closes a connection that does not log in within loginGraceTime.
func (h *Host) limitLogin(ctx context.Context, wire net.Conn) (inTime func()) {
	timer := h.clock.NewTimer(loginGraceTime)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			_ = wire.Close() // intended
		case <-ctx.Done():
		}
	}()
	return cancel
}

func (h *Host) performHandshake(wire *wireConn) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	config := &ssh.ServerConfig{
		ServerVersion: serverVersion, MaxAuthTries: maxAuthTries,
		PublicKeyCallback: func(user ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if err := h.faults.delayWhileActive(wire.open, h.clock, SlowLogin); err != nil {
				return nil, err
			}
			return nil, h.checkAuthorized(user.User(), key)
		},
		BannerCallback: func(ssh.ConnMetadata) string {
			if noise := h.faults.findActive(NoiseBeforeOutput); noise != nil {
				return "Authorized access only.\r\n"
			}
			return ""
		},
	}
	key, err := h.hostKey()
	if err != nil {
		return nil, nil, nil, err
	}
	config.AddHostKey(key)
	return ssh.NewServerConn(wire, config)
}

func (h *Host) randomPercent() int {
	if h.options.MaxStartups.Begin == 0 {
		return 0
	}
	var b [4]byte
	if _, err := h.options.Rand.Read(b[:]); err != nil {
		return 0
	}
	return int(binary.BigEndian.Uint32(b[:]) % 100)
}

// answerRequests replies to global requests like OpenSSH: keepalives get a failure, which is a valid reply.
func (c *connection) answerRequests(requests <-chan *ssh.Request) {
	for request := range requests {
		if request.WantReply {
			_ = request.Reply(request.Type == keepMoreRequest, nil) // the connection may be closed
		}
	}
}

// acceptSessions opens the sessions that the client requests.
func (c *connection) acceptSessions(channels <-chan ssh.NewChannel) {
	var group sync.WaitGroup
	defer group.Wait()
	for channel := range channels {
		if !c.host.machine.IsPortAllowed(22) {
			_ = c.wire.Close() // a firewall also filters established connections
			return
		}
		if reason, refusal := c.refusalReason(channel.ChannelType()); refusal != "" {
			_ = channel.Reject(reason, refusal) // the connection may be closed
			continue
		}
		group.Go(func() {
			defer c.endSession()
			if c.host.faults.delayWhileActive(c.ctx, c.host.clock, SlowSession) != nil {
				return
			}
			if opened, requests, err := channel.Accept(); err == nil {
				newSession(c, opened).serveRequests(requests)
			}
		})
	}
}

// refusalReason counts an allowed session, and returns the reason for refusing any other channel.
func (c *connection) refusalReason(kind string) (ssh.RejectionReason, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == "direct-tcpip":
		return ssh.Prohibited, "administratively prohibited"
	case kind != "session":
		return ssh.UnknownChannelType, "unknown channel type"
	case c.sessions >= maxSessions:
		return ssh.ConnectionFailed, "open failed"
	}
	c.sessions++
	return 0, ""
}

func (c *connection) endSession() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions--
}
