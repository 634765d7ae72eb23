package wine

import "time"

// Kind is the kind of an entry in the journal.
type Kind string

// Kinds of entries.
const (
	KindBoot       Kind = "boot"       // the host starts to boot; the detail is the host name
	KindUp         Kind = "up"         // SSH logins succeed
	KindDown       Kind = "down"       // the host went down; the detail is the reason
	KindName       Kind = "name"       // a host name was set for the next boot
	KindLogin      Kind = "login"      // a login, or a refused one
	KindDisconnect Kind = "disconnect" // a connection ended
	KindExec       Kind = "exec"       // a command began; the detail is its line
	KindExit       Kind = "exit"       // a command ended; the detail is its exit code and line
	KindSFTP       Kind = "sftp"       // a file session began
)

// Entry is one event of a host.
type Entry struct {
	Time   time.Time
	Kind   Kind
	Detail string
}
