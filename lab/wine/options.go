package wine

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"
)

// Options describe one host.
type Options struct {
	// Base is what Prepare made. Required.
	Base *Base
	// Name is the computer name. Required.
	Name string
	// Address is the host's IPv4 address, which nobody else in the caller's network namespace may have. Required.
	Address netip.Addr
	// Gateway is the caller's end of the line to the host, and its default gateway. Default: the last address but one of
	// the /16 that Address is in. Many hosts may share it. The caller's other addresses, those of other Wine hosts
	// included, are reached over it as well.
	Gateway netip.Addr
	// Prefix is the length of the subnet mask that the host has. Default: 16.
	Prefix int
	// System is what Windows says it is. Default: WindowsServer2022.
	System Identity
	// Users may log in; all of them are administrators. Whoever logs in, programs run as Administrator: Wine has one user.
	// Default: Administrator.
	Users []string
	// AuthorizedKeys are the keys of administrators at the first boot: they lie where OpenSSH for Windows has them,
	// C:\ProgramData\ssh\administrators_authorized_keys, which is read at each login.
	AuthorizedKeys []ssh.PublicKey
	// Names are added to the names that the host knows: it has the caller's /etc/hosts and its own name.
	Names map[string]netip.Addr
	// Files are copied to the host's drive before it first boots: files on this machine by Windows path (C:\...).
	Files map[string]string
	// Registry is added to the machine's registry (HKEY_LOCAL_MACHINE) before it first boots: keys and values in Wine's
	// own format, see registry/*.reg.
	Registry []string
	// Down is how long a host is away between shutdown and boot. Default: 500 ms.
	Down time.Duration
	// Hang is how long the SSH server may not answer before the host is reset: Wine may hang where Windows does not.
	// Default: 90 s.
	Hang time.Duration
	// Rand gives keys. Default: crypto/rand.
	Rand io.Reader
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Base == nil:
		return o, errors.New("no base to clone: call Prepare first")
	case o.Name == "":
		return o, errors.New("it has no name")
	case !o.Address.Is4():
		return o, fmt.Errorf("%v is no IPv4 address", o.Address)
	}
	o.Prefix = cmp.Or(o.Prefix, 16)
	if !o.Gateway.IsValid() {
		a := o.Address.As4()
		o.Gateway = netip.AddrFrom4([4]byte{a[0], a[1], 255, 254})
	}
	if o.System == (Identity{}) {
		o.System = WindowsServer2022()
	}
	if len(o.Users) == 0 {
		o.Users = []string{"Administrator"}
	}
	o.Down = cmp.Or(o.Down, 500*time.Millisecond)
	o.Hang = cmp.Or(o.Hang, 90*time.Second)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o, nil
}
