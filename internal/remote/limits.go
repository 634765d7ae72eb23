package remote

import "time"

// Default limits. They are what a user may rely on for the time until a fault shows in a status.
const (
	DefaultDialLimit         = 10 * time.Second
	DefaultHandshakeLimit    = time.Minute
	DefaultExecStartLimit    = 30 * time.Second
	DefaultHelloLimit        = time.Minute
	DefaultSilenceLimit      = 5 * time.Minute
	DefaultVerbLimit         = 2 * time.Hour
	DefaultSFTPStallLimit    = 30 * time.Second
	DefaultFileLimit         = 2 * time.Minute
	DefaultSlowestTransfer   = 32
	DefaultKeepaliveInterval = 15 * time.Second
	DefaultKeepaliveMisses   = 3
	DefaultEndLimit          = 10 * time.Second
	DefaultRebootLimit       = time.Minute
	DefaultIdleLimit         = time.Minute
	DefaultConnections       = 512
)

// Limits are how long the operator waits for a host. A zero field means its default.
type Limits struct {
	// Dial is for name resolution and the TCP connection together.
	Dial time.Duration
	// Handshake is for the SSH identification, key exchange and login together. Each of these can take OpenSSH for Windows
	// most of a minute: it starts a process for the connection, and makes the user's profile at the first login.
	Handshake time.Duration
	// ExecStart is for the SSH server to open a session and to accept a command.
	ExecStart time.Duration
	// Hello is from then until the agent's first line: the shell's start, and the scan of a new program by an antivirus.
	Hello time.Duration
	// Silence is the longest time between two lines of a running verb.
	Silence time.Duration
	// Verb is the longest time from a verb's first line to its last.
	Verb time.Duration
	// SFTPStall is the longest time without an answer during a file operation or transfer.
	SFTPStall time.Duration
	// File is the longest time of a file operation, however often the host answers.
	File time.Duration
	// SlowestTransfer is the rate, in KiB per second, that a transfer must have. A transfer may take File and the time that
	// its content needs at this rate.
	SlowestTransfer int
	// Keepalive is the interval between two keepalives; the connection is lost when KeepaliveMisses in a row bring no
	// answer.
	Keepalive       time.Duration
	KeepaliveMisses int
	// End is how long a session may take to end after the agent's last line, or after it was told to.
	End time.Duration
	// Reboot is how long a host may take from saying that it restarts until the session ends.
	Reboot time.Duration
	// Idle is how long a Pool keeps a connection that nobody uses.
	Idle time.Duration
	// Connections is how many connections a Pool has at most, those that are being made among them. It is as many as there
	// are hosts that the operator works on at once: with fewer, hosts that do not answer would hold up those that do.
	Connections int
}

// withDefaults fills what is zero.
func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&l.Dial, DefaultDialLimit},
		{&l.Handshake, DefaultHandshakeLimit},
		{&l.ExecStart, DefaultExecStartLimit},
		{&l.Hello, DefaultHelloLimit},
		{&l.Silence, DefaultSilenceLimit},
		{&l.Verb, DefaultVerbLimit},
		{&l.SFTPStall, DefaultSFTPStallLimit},
		{&l.File, DefaultFileLimit},
		{&l.Keepalive, DefaultKeepaliveInterval},
		{&l.End, DefaultEndLimit},
		{&l.Reboot, DefaultRebootLimit},
		{&l.Idle, DefaultIdleLimit},
	} {
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}
	if l.SlowestTransfer == 0 {
		l.SlowestTransfer = DefaultSlowestTransfer
	}
	if l.KeepaliveMisses == 0 {
		l.KeepaliveMisses = DefaultKeepaliveMisses
	}
	if l.Connections == 0 {
		l.Connections = DefaultConnections
	}
	return l
}

// transfer returns how long the transfer of a file of this size in bytes may take.
func (l Limits) transfer(size int64) time.Duration {
	return l.File + time.Duration(size/(int64(l.SlowestTransfer)<<10))*time.Second
}
