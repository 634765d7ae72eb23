package remote

import "time"

// Default limits. Users may rely on these limits for the time until a status shows a failure.
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

// Limits are the time limits for a host. A zero field means its default.
type Limits struct {
	// Dial is the timeout of name resolution and the TCP connection together.
	Dial time.Duration
	// Handshake is the timeout of the SSH identification, key exchange and login together. Each of these can take
	// OpenSSH for Windows most of a minute: the server starts a process for the connection and creates the user's
	// profile at the first login.
	Handshake time.Duration
	// ExecStart is the timeout for the SSH server to open a session and to accept a command.
	ExecStart time.Duration
	// Hello is the subsequent timeout until the agent's first line. It includes the start of the shell and the
	// antivirus scan of a new executable.
	Hello time.Duration
	// Silence is the maximum time between two lines of a running agent command.
	Silence time.Duration
	// Verb is the maximum time from the first to the last line of an agent command.
	Verb time.Duration
	// SFTPStall is the maximum time without an answer during a file operation or transfer.
	SFTPStall time.Duration
	// File is the maximum time of a file operation, regardless of the number of answers.
	File time.Duration
	// SlowestTransfer is the minimum rate of a transfer in KiB per second. A transfer may take File plus the time
	// that its content needs at this rate.
	SlowestTransfer int
	// Keepalive is the interval between two keepalives. After KeepaliveMisses consecutive keepalives without an
	// answer the connection is lost.
	Keepalive       time.Duration
	KeepaliveMisses int
	// End is the timeout for a session to end after the agent's last line or after a request to end.
	End time.Duration
	// Reboot is the timeout for the session to end after the host announced a restart.
	Reboot time.Duration
	// Idle is the time for which a Pool keeps an unused connection.
	Idle time.Duration
	// Connections is the maximum number of connections of a Pool, including connections being established. It equals
	// the number of hosts that the operator processes at once. With fewer, unresponsive hosts would delay the
	// responsive hosts.
	Connections int
}

// withDefaults sets zero fields to their defaults.
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

// transfer returns the maximum time for the transfer of a file of this size in bytes.
func (l Limits) transfer(size int64) time.Duration {
	return l.File + time.Duration(size/(int64(l.SlowestTransfer)<<10))*time.Second
}
