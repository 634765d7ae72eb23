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
	// Base is the result of Prepare. Required.
	Base *Base
	// Name is the computer name. Required.
	Name string
	// Address is the host's IPv4 address, which must be unique in the caller's network namespace. Required.
	Address netip.Addr
	// Gateway is the caller's end of the link and the default gateway of the host. Default: the last address
	// but one of the /16 that contains Address. Many hosts may share it. It also routes to the caller's other
	// addresses, including other Wine hosts.
	Gateway netip.Addr
	// Prefix is the prefix length of the host's subnet. Default: 16.
	Prefix int
	// System is the Windows version that the host reports. Default: WindowsServer2022.
	System Identity
	// Users may log in; all of them are administrators. Programs always run as Administrator, because Wine has
	// one user. Default: Administrator.
	Users []string
	// AuthorizedKeys are the keys of administrators at the first boot. They are stored in the file of OpenSSH
	// for Windows, C:\ProgramData\ssh\administrators_authorized_keys, which is read at each login.
	AuthorizedKeys []ssh.PublicKey
	// Names are added to the names that the host resolves: the caller's /etc/hosts and its own name.
	Names map[string]netip.Addr
	// Files are copied to the drive of the host before the first boot: local paths by Windows path (C:\...).
	Files map[string]string
	// Registry is added to the machine registry (HKEY_LOCAL_MACHINE) before the first boot: keys and values in
	// the format of Wine. See registry/*.reg.
	Registry []string
	// BootDelay is the delay between shutdown and boot. Default: 500 ms.
	BootDelay time.Duration
	// HangTimeout is the time without a response of the SSH server after which the host is reset: Wine may hang where
	// Windows does not. Default: 90 s.
	HangTimeout time.Duration
	// Rand is the source of randomness for keys. Default: crypto/rand.
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
	o.BootDelay = cmp.Or(o.BootDelay, 500*time.Millisecond)
	o.HangTimeout = cmp.Or(o.HangTimeout, 90*time.Second)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o, nil
}
