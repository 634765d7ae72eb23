// Package wire defines the protocol between the creator of a host, the first process of the host, and its SSH
// server: JSON lines.
package wire

import (
	"net/netip"
	"time"
)

// File descriptors that the first process inherits, after the standard three.
const (
	// CommandsFD delivers the configuration and then commands. The host ends when it is closed.
	CommandsFD = 3 + iota
	// EventsFD receives events.
	EventsFD
)

// Config describes the host for the first process.
type Config struct {
	// Dir is the directory of the host. It contains the prefix and the mount points.
	Dir string `json:"dir"`
	// Root is the chroot with Wine.
	Root string `json:"root"`
	// Overlays are local files that replace files of the chroot, by path in the chroot.
	Overlays map[string]string `json:"overlays,omitempty"`
	// Name is the computer name if the registry has none.
	Name string `json:"name"`
	// Interface is the network interface to the creator, already moved to the network namespace; "" for a host
	// without a network.
	Interface string `json:"interface"`
	// Address is the address of the host with the prefix length. Gateway is the other end of the link.
	Address netip.Prefix `json:"address"`
	Gateway netip.Addr   `json:"gateway"`
	// Hosts is the beginning of /etc/hosts. The name of the host is appended.
	Hosts string `json:"hosts"`
	// Program is the program that keeps the host running, the SSH server: a Windows path and arguments.
	Program []string `json:"program"`
	// Install is true while a Windows installation is created: all programs may end by themselves, and Dir is
	// kept.
	Install bool `json:"install"`
	// BootDelay is the delay between shutdown and boot.
	BootDelay time.Duration `json:"down"`
	// HangTimeout is the time without a response of the SSH server after which the host is reset; 0 means never.
	HangTimeout time.Duration `json:"hang,omitempty"`
}

// Names within Config.Dir, and the mount path of the prefix in the chroot.
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

// Commands of the creator.
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

// Kinds of events that the first process or the creator handles. All other kinds are only recorded in the
// journal.
const (
	// Ready: the namespaces are set up.
	Ready = "ready"
	// Failed: a permanent failure; the detail is the cause.
	Failed = "failed"
	// BootAt: the host starts to boot; the detail is the host name.
	BootAt = "boot"
	// Up: the SSH server listens.
	Up = "up"
	// Down: all processes have ended; the detail is the reason.
	Down = "down"
	// Name: a host name was set for the next boot; the detail is the name.
	Name = "name"
)
