// Package winhost is the SSH and SFTP server of a Windows Server in front of a simulated machine. To clients it
// behaves like OpenSSH for Windows, with the same default shells, paths, errors and limits. Requests that a Windows
// host would refuse are refused. Faults can be injected by name, and all events are recorded in the machine's
// journal.
package winhost

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// Kinds of journal entries besides the kinds of package fake. KindExec counts started processes, and KindCommand
// requested commands.
const (
	KindSession   fake.Kind = "session"   // a command's session: SessionBegan or SessionEnded, the client's address, and the command line
	KindCommand   fake.Kind = "command"   // an exec request; the detail is the original command line
	KindForbidden fake.Kind = "forbidden" // forbidden for product code: shell syntax, PowerShell, netsh …
	KindLogin     fake.Kind = "login"     // the result of an authentication
	KindSSHD      fake.Kind = "sshd"      // the SSH server started or stopped listening, or could not listen
)

// Options describe the SSH server of a host.
type Options struct {
	// Machine is the Windows machine. Required.
	Machine *fake.Machine
	// Listen opens port 22 of the host's address, at each boot. Required.
	Listen func(ctx context.Context) (net.Listener, error)
	// AuthorizedKeys are the keys of each user at the start. Every user named here and Administrator have an account.
	// Nil does not change the key files on the drive.
	AuthorizedKeys map[string][]ssh.PublicKey
	// Administrators are further accounts that are members of Administrators. No keys are written for these accounts:
	// they share the key file with Administrator.
	Administrators []string
	// NotInstalled starts with a machine without an SSH server, which listens only after Install.
	NotInstalled bool
	// StandardUsers are accounts that are not members of Administrators. Each has a key file in the user's profile.
	StandardUsers []string
	// Shell runs the command lines. Default: Cmd.
	Shell Shell
	// HostKey is the host key in the image; without it the first start creates a key.
	HostKey ed25519.PrivateKey
	// Rand is the source of the host key at the first start, when the drive has none, and of the random numbers for
	// MaxStartups. Required.
	Rand io.Reader
	// Clock measures the boot delay and the login time. Default: the real clock.
	Clock clock.Clock
	// BootDelay is the time from the end of the boot until the SSH server listens.
	BootDelay time.Duration
	// MaxStartups makes the server drop connections early while many are not logged in. The zero value never does.
	MaxStartups MaxStartups
	// Link, if set, is the line of all connections, starting with the TCP handshake.
	Link *Link
}

// Host is the SSH server of one machine.
type Host struct {
	options Options
	machine *fake.Machine
	clock   clock.Clock
	slow    *Link // changed by faults only
	faults  faults
	traffic traffic
	group   sync.WaitGroup
	logins  atomic.Int32 // connections that are not logged in yet

	mu          sync.Mutex
	running     context.Context // from Start to Stop; nil before
	missing     bool            // not installed yet
	stop        context.CancelFunc
	boot        int // counts boots and shutdowns, so that a late listener notices
	listener    net.Listener
	connections map[*wireConn]struct{}
}

// New creates the server of a host. It does not listen before Start.
func New(options Options) *Host {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Shell == "" {
		options.Shell = Cmd
	}
	return &Host{
		options: options, machine: options.Machine, clock: options.Clock, missing: options.NotInstalled,
		slow: NewLink(options.Clock, LinkProperties{}), connections: map[*wireConn]struct{}{},
	}
}

// Machine returns the machine behind the server.
func (h *Host) Machine() *fake.Machine { return h.machine }

// Start installs the server on the machine, including host key and key files. The server listens as soon as the
// machine runs, now and after each boot, until Stop or the end of ctx.
func (h *Host) Start(ctx context.Context) error {
	if err := limitExtensions(); err != nil {
		return fmt.Errorf("set up SFTP: %w", err)
	}
	if err := h.writeKeys(); err != nil {
		return fmt.Errorf("install the SSH server of %s: %w", h.machine.Name(), err)
	}
	h.mu.Lock()
	if h.running != nil {
		h.mu.Unlock()
		return fmt.Errorf("the SSH server of %s was started before", h.machine.Name())
	}
	h.running, h.stop = context.WithCancel(ctx)
	h.mu.Unlock()
	context.AfterFunc(h.running, h.shutDown)
	h.machine.OnBoot(h.listenAfterBoot)
	h.machine.OnShutdown(h.shutDown)
	if h.machine.IsRunning() {
		h.listenAfterBoot()
	}
	return nil
}

// Stop stops the server permanently, with all connections and processes.
func (h *Host) Stop() {
	h.mu.Lock()
	stop := h.stop
	h.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	h.shutDown()
	h.group.Wait()
}

// listenAfterBoot makes the server listen after the boot delay.
func (h *Host) listenAfterBoot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running.Err() != nil {
		return
	}
	h.boot++
	boot := h.boot
	delay := h.options.BootDelay
	if slow := h.faults.findActive(SlowBoot); slow != nil {
		delay += slow.parameters.Duration
	}
	if delay <= 0 {
		h.startListening()
		return
	}
	timer := h.clock.NewTimer(delay) // created before the machine is observably up
	h.group.Add(1)
	go func() {
		defer h.group.Done()
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-h.running.Done():
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.boot == boot {
			h.startListening()
		}
	}()
}

// startListening opens the port unless the state of the host forbids it. The caller holds the lock.
func (h *Host) startListening() {
	installed := !h.missing && h.machine.IsSSHRunning()
	if !installed || h.listener != nil || h.running.Err() != nil || h.faults.findActive(RefuseConnection) != nil {
		return
	}
	err := h.keepHostKey()
	if err == nil {
		h.listener, err = h.openListener()
	}
	if err != nil {
		h.recordEntry(KindSSHD, "cannot start: "+err.Error())
		return
	}
	h.recordEntry(KindSSHD, "listens on "+h.listener.Addr().String())
	h.group.Add(1)
	go h.acceptConnections(h.listener)
}

func (h *Host) openListener() (net.Listener, error) {
	listener, err := h.options.Listen(h.running)
	if err != nil || h.options.Link == nil {
		return listener, err
	}
	return h.options.Link.Listener(listener), nil
}

// shutDown closes the port and cuts all connections, like a shutdown of the machine.
func (h *Host) shutDown() {
	h.mu.Lock()
	h.boot++
	h.closeListener()
	h.mu.Unlock()
	h.CutConnections()
}

func (h *Host) closeListener() {
	if h.listener == nil {
		return
	}
	_ = h.listener.Close() // errors of the end do not matter
	h.listener = nil
	h.recordEntry(KindSSHD, "no longer listens")
}

// Install installs the SSH server on a machine without a server, and starts it, now and with each boot. Install does
// nothing if the server is installed.
func (h *Host) Install() {
	h.mu.Lock()
	installed := h.missing
	h.missing = false
	h.mu.Unlock()
	if installed {
		h.recordEntry(KindSSHD, "is installed")
		h.resumeListening()
	}
}

// resumeListening reopens the port if the machine is up.
func (h *Host) resumeListening() {
	up := h.machine.IsRunning()
	h.mu.Lock()
	defer h.mu.Unlock()
	if up && h.running != nil {
		h.startListening()
	}
}

func (h *Host) acceptConnections(listener net.Listener) {
	defer h.group.Done()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.recordEntry(KindSSHD, "accept: "+err.Error())
			return
		}
		if !h.admitConnection(listener, conn) {
			_ = conn.Close() // the machine went down meanwhile
		}
	}
}

// admitConnection registers and serves a connection, unless its listener was replaced.
func (h *Host) admitConnection(listener net.Listener, conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != listener {
		return false
	}
	h.recordEntry(fake.KindConnection, "from "+conn.RemoteAddr().String())
	wire := h.wrapConn(conn)
	h.connections[wire] = struct{}{}
	h.group.Add(1)
	go func() {
		defer h.group.Done()
		defer h.removeConnection(wire)
		h.serveConnection(h.running, wire)
	}()
	return true
}

func (h *Host) removeConnection(conn *wireConn) {
	_ = conn.Close() // may be closed already
	h.mu.Lock()
	delete(h.connections, conn)
	h.mu.Unlock()
	h.recordTraffic()
}

// CutConnections drops all connections without a message, as a lost network does. New connections are accepted.
func (h *Host) CutConnections() {
	h.mu.Lock()
	connections := h.connections
	h.connections = map[*wireConn]struct{}{}
	h.mu.Unlock()
	for conn := range connections {
		_ = conn.Close() // intended
	}
}

func (h *Host) recordEntry(kind fake.Kind, detail string) {
	h.machine.Journal().Append(kind, detail, 0)
}
