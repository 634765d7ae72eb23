// Package wire is the language between the maker of a host, the host's first process and its SSH server: JSON lines.
package wire

import (
	"net/netip"
	"time"
)

// Files that the first process inherits, after the standard three.
const (
	// CommandsFD gives the configuration and then commands. Its end is the end of the host.
	CommandsFD = 3 + iota
	// EventsFD takes events.
	EventsFD
)

// Config describes the host for the first process.
type Config struct {
	// Dir is the host's own folder: with the prefix in it, and room for mount points.
	Dir string `json:"dir"`
	// Root is the chroot with Wine.
	Root string `json:"root"`
	// Overlays are files of this machine that are seen in place of the chroot's, by path there.
	Overlays map[string]string `json:"overlays,omitempty"`
	// Name is the computer name when the registry has none.
	Name string `json:"name"`
	// Interface is the link to the maker, which was put into the network namespace; "" for a
	// host without a network.
	Interface string `json:"interface"`
	// Address is the host's own with the length of its mask, Gateway the other end of the link.
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway"`
	// Hosts is the beginning of /etc/hosts; the host's own name follows.
	Hosts string `json:"hosts"`
	// Program is what keeps the host up, the SSH server: a Windows path and arguments.
	Program []string `json:"program"`
	// Install says that a Windows installation is being made: all programs may end by themselves, and Dir stays.
	Install bool `json:"install"`
	// Down is how long the host is away between shutdown and boot.
	Down time.Duration `json:"down"`
	// Hang is how long the SSH server may not answer before the host is reset; 0 means forever.
	Hang time.Duration `json:"hang,omitempty"`
}

// Names within Config.Dir, and where the prefix is mounted in the chroot.
const (
	PrefixDir   = "prefix"
	LockFile    = "lock"
	ConsoleFile = "console.log"
	RootDir     = "root"
	EtcDir      = "etc"
	// MountedPrefix is a path in the chroot.
	MountedPrefix = "/prefix"
)

// Command is a request to the first process.
type Command string

// Commands.
const (
	// Boot boots a host that is off.
	Boot Command = "boot"
	// PowerOff ends all processes at once, and the host stays off.
	PowerOff Command = "power-off"
)

// Message is a line on CommandsFD after the configuration.
type Message struct {
	Do Command `json:"do"`
}

// Event is a line on EventsFD, or on the SSH server's standard output.
type Event struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
}

// Kinds of events that the first process or the maker acts on; others only go into the journal.
const (
	// Ready: the namespaces are set up.
	Ready = "ready"
	// Failed: something went wrong for good; the detail says what.
	Failed = "failed"
	// BootAt: the host begins to boot; the detail is its name.
	BootAt = "boot"
	// Up: the SSH server listens.
	Up = "up"
	// Down: all processes are gone; the detail says why.
	Down = "down"
	// Name: a host name was set for the next boot; the detail is it.
	Name = "name"
)
