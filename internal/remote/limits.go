package remote

import "time"

// Default limits. Users may rely on these limits for the time until a status shows a failure.
const (
	DefaultDialTimeout        = 10 * time.Second
	DefaultHandshakeTimeout   = time.Minute
	DefaultExecStartTimeout   = 30 * time.Second
	DefaultHelloTimeout       = time.Minute
	DefaultSilenceTimeout     = 5 * time.Minute
	DefaultCommandTimeout     = 2 * time.Hour
	DefaultSFTPStallTimeout   = 30 * time.Second
	DefaultFileTimeout        = 2 * time.Minute
	DefaultMinTransferRate    = 32
	DefaultKeepaliveInterval  = 15 * time.Second
	DefaultMaxKeepaliveMisses = 3
	DefaultEndTimeout         = 10 * time.Second
	DefaultRebootTimeout      = time.Minute
	DefaultIdleTimeout        = time.Minute
	DefaultMaxConnections     = 512
)

// Limits are the time limits for a host. A zero field means its default.
type Limits struct {
	// DialTimeout is the timeout of name resolution and the TCP connection together.
	DialTimeout time.Duration
	// HandshakeTimeout is the timeout of the SSH identification, key exchange and login together. Each of these can
	// take OpenSSH for Windows most of a minute: the server starts a process for the connection and creates the user's
	// profile at the first login.
	HandshakeTimeout time.Duration
	// ExecStartTimeout is the timeout for the SSH server to open a session and to accept a command.
	ExecStartTimeout time.Duration
	// HelloTimeout is the subsequent timeout until the agent's first line. It includes the start of the shell and the
	// antivirus scan of a new executable.
	HelloTimeout time.Duration
	// SilenceTimeout is the maximum time between two lines of a running agent command.
	SilenceTimeout time.Duration
	// CommandTimeout is the maximum time from the first to the last line of an agent command.
	CommandTimeout time.Duration
	// SFTPStallTimeout is the maximum time without an answer during a file operation or transfer.
	SFTPStallTimeout time.Duration
	// FileTimeout is the maximum time of a file operation, regardless of the number of answers.
	FileTimeout time.Duration
	// MinTransferRate is the minimum rate of a transfer in KiB per second. A transfer may take FileTimeout plus the
	// time that its content needs at this rate.
	MinTransferRate int
	// KeepaliveInterval is the interval between two keepalives. After MaxKeepaliveMisses consecutive keepalives without
	// an answer the connection is lost.
	KeepaliveInterval  time.Duration
	MaxKeepaliveMisses int
	// EndTimeout is the timeout for a session to end after the agent's last line or after a request to end.
	EndTimeout time.Duration
	// RebootTimeout is the timeout for the session to end after the host announced a restart.
	RebootTimeout time.Duration
	// IdleTimeout is the time for which a Pool keeps an unused connection.
	IdleTimeout time.Duration
	// MaxConnections is the maximum number of connections of a Pool, including connections being established. It equals
	// the number of hosts that the operator processes at once. With fewer, unresponsive hosts would delay the
	// responsive hosts.
	MaxConnections int
}

// withDefaults sets zero fields to their defaults.
func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&l.DialTimeout, DefaultDialTimeout},
		{&l.HandshakeTimeout, DefaultHandshakeTimeout},
		{&l.ExecStartTimeout, DefaultExecStartTimeout},
		{&l.HelloTimeout, DefaultHelloTimeout},
		{&l.SilenceTimeout, DefaultSilenceTimeout},
		{&l.CommandTimeout, DefaultCommandTimeout},
		{&l.SFTPStallTimeout, DefaultSFTPStallTimeout},
		{&l.FileTimeout, DefaultFileTimeout},
		{&l.KeepaliveInterval, DefaultKeepaliveInterval},
		{&l.EndTimeout, DefaultEndTimeout},
		{&l.RebootTimeout, DefaultRebootTimeout},
		{&l.IdleTimeout, DefaultIdleTimeout},
	} {
		if *field.value == 0 {
			*field.value = field.fallback
		}
	}
	if l.MinTransferRate == 0 {
		l.MinTransferRate = DefaultMinTransferRate
	}
	if l.MaxKeepaliveMisses == 0 {
		l.MaxKeepaliveMisses = DefaultMaxKeepaliveMisses
	}
	if l.MaxConnections == 0 {
		l.MaxConnections = DefaultMaxConnections
	}
	return l
}

// transferTimeout returns the maximum time for the transfer of a file of this size in bytes.
func (l Limits) transferTimeout(size int64) time.Duration {
	return l.FileTimeout + time.Duration(size/(int64(l.MinTransferRate)<<10))*time.Second
}
