package wine

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// Host is one Windows host. Its methods are safe for concurrent use.
type Host struct {
	options Options
	dir     string
	lock    *os.File // held while the host exists; an unlocked directory is a leftover
	process *process
	link    link
	hostKey ssh.PublicKey
	labKey  ssh.Signer
	closing sync.Once
	closed  error
}

// New clones the base and sets up the host. The host is off until Start. Close removes the host, and it also
// ends with this process.
func New(ctx context.Context, options Options) (*Host, error) {
	options, err := options.withDefaults()
	if err == nil {
		err = Available()
	}
	if err != nil {
		return nil, fmt.Errorf("make the Wine host %s: %w", options.Name, err)
	}
	h := &Host{options: options}
	for _, step := range []func(context.Context) error{h.createDirectory, h.createDrive, h.createProcess, h.setUp} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("make the Wine host %s: %w", options.Name, err), h.Close())
		}
	}
	return h, nil
}

func (h *Host) createDirectory(context.Context) (err error) {
	h.dir, h.lock, err = newLockedDirectory(filepath.Join(h.options.Base.Dir, hostsDir), h.options.Name)
	return err
}

// createDrive clones the Windows installation and adds the settings of this host.
func (h *Host) createDrive(context.Context) error {
	prefix := filepath.Join(h.dir, wire.PrefixDir)
	if err := clonePrefix(h.options.Base.Prefix, prefix); err != nil {
		return err
	}
	if err := linkProgram(prefix, h.options.Base.sshd, sshdPath); err != nil {
		return err
	}
	for windows, local := range h.options.Files {
		if err := copyToDrive(prefix, local, windows); err != nil {
			return err
		}
	}
	guid, err := machineGUID(h.options.Rand)
	if err != nil {
		return err
	}
	additions := append([]string{h.options.System.formatRegistry(), hostName(h.options.Name), guid}, h.options.Registry...)
	if err := addToRegistry(filepath.Join(prefix, "system.reg"), additions...); err != nil {
		return err
	}
	return h.createKeys(prefix)
}

// createKeys writes the host key and the authorized keys.
func (h *Host) createKeys(prefix string) error {
	_, hostKey, err := ed25519.GenerateKey(h.options.Rand)
	if err != nil {
		return fmt.Errorf("make the host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(hostKey, "")
	if err != nil {
		return fmt.Errorf("encode the host key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(hostKey)
	if err != nil {
		return err
	}
	h.hostKey = signer.PublicKey()
	_, labKey, err := ed25519.GenerateKey(h.options.Rand)
	if err != nil {
		return fmt.Errorf("make the lab's key: %w", err)
	}
	if h.labKey, err = ssh.NewSignerFromKey(labKey); err != nil {
		return err
	}
	var authorized strings.Builder
	for _, key := range h.options.AuthorizedKeys {
		authorized.Write(ssh.MarshalAuthorizedKey(key))
	}
	return errors.Join(
		writeFile(prefix, hostKeyPath, pem.EncodeToMemory(block)),
		writeFile(prefix, authorizedKeysPath, []byte(authorized.String())),
		writeFile(prefix, labKeysPath, ssh.MarshalAuthorizedKey(h.labKey.PublicKey())),
	)
}

func (h *Host) createProcess(context.Context) (err error) {
	if h.process, err = launchProcess(h.options.Base.machine); err != nil {
		return err
	}
	h.link, err = newLink(h.process.command.Process.Pid, h.options.Address, h.options.Gateway)
	return err
}

func (h *Host) setUp(ctx context.Context) error {
	hosts, err := h.hostsFile()
	if err != nil {
		return err
	}
	err = h.process.sendMessage(wire.Config{
		Dir: h.dir, Root: h.options.Base.Root, Overlays: h.options.Base.rootOverlays(), Name: h.options.Name,
		Interface: h.link.inside,
		Address:   netip.PrefixFrom(h.options.Address, h.options.Prefix), Gateway: h.options.Gateway, Hosts: hosts,
		BootDelay: h.options.BootDelay, HangTimeout: h.options.HangTimeout,
		Program: []string{sshdPath, "-users", strings.Join(h.options.Users, ","), "-keys",
			authorizedKeysPath + "," + labKeysPath,
			"-host-key", hostKeyPath},
	})
	if err != nil {
		return err
	}
	return h.process.awaitState(ctx, func(s state) bool { return s.ready })
}

// hostsFile returns the hosts file of the caller, extended by Options.Names.
func (h *Host) hostsFile() (string, error) {
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return "", fmt.Errorf("read the names for the host: %w", err)
	}
	b := strings.Builder{}
	b.Write(hosts)
	for name, address := range h.options.Names {
		fmt.Fprintf(&b, "\n%s %s", address, name)
	}
	return b.String(), nil
}

// Start boots the host and returns when SSH logins succeed. A running host is not changed.
func (h *Host) Start(ctx context.Context) error {
	err := h.process.sendMessage(wire.Message{Do: wire.Boot})
	if err == nil {
		err = h.process.awaitState(ctx, func(s state) bool { return s.up })
	}
	if err != nil {
		return fmt.Errorf("boot the Wine host %s: %w%s", h.options.Name, err, h.consoleEnd())
	}
	return nil
}

// Stop cuts the power: all processes end at once. Data that Windows has not written to the drive is lost. The
// host stays off until Start.
func (h *Host) Stop(ctx context.Context) error {
	err := h.process.sendMessage(wire.Message{Do: wire.PowerOff})
	if err == nil {
		err = h.process.awaitState(ctx, func(s state) bool { return !s.on })
	}
	if err != nil {
		return fmt.Errorf("stop the Wine host %s: %w", h.options.Name, err)
	}
	return nil
}

// Close ends the host and removes its drive.
func (h *Host) Close() error {
	h.closing.Do(func() {
		var errs []error
		if h.process != nil {
			h.process.endHost()
			errs = append(errs, h.link.removeDevice())
		}
		if h.dir != "" {
			errs = append(errs, os.RemoveAll(h.dir)) // already done by the first process, unless it was killed
		}
		if h.lock != nil {
			_ = h.lock.Close()
		}
		if err := errors.Join(errs...); err != nil {
			h.closed = fmt.Errorf("end the Wine host %s: %w", h.options.Name, err)
		}
	})
	return h.closed
}

// Boots returns the number of boots so far.
func (h *Host) Boots() int {
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	return h.process.state.boots
}

// WaitBoot waits until the host has booted n times in total and SSH logins succeed. To wait for a restart, pass
// n = Boots()+1, read before the restart is requested.
func (h *Host) WaitBoot(ctx context.Context, n int) error {
	if err := h.process.awaitState(ctx, func(s state) bool { return s.up && s.boots >= n }); err != nil {
		return fmt.Errorf("wait for boot %d of the Wine host %s: %w%s", n, h.options.Name, err, h.consoleEnd())
	}
	return nil
}

// Name returns the initial computer name of the host.
func (h *Host) Name() string { return h.options.Name }

// Address returns host:port of the SSH server.
func (h *Host) Address() string { return net.JoinHostPort(h.options.Address.String(), "22") }

// HostKey returns the host key of the SSH server.
func (h *Host) HostKey() ssh.PublicKey { return h.hostKey }

// Journal returns the events so far: boots, logins, commands and file sessions.
func (h *Host) Journal() []Entry {
	h.process.mu.Lock()
	defer h.process.mu.Unlock()
	return append([]Entry(nil), h.process.journal...)
}

// maxConsoleBytes is the maximum number of console bytes in an error message.
const maxConsoleBytes = 2 << 10

// consoleEnd returns the end of the standard error of Wine and the SSH server, for error messages.
func (h *Host) consoleEnd() string { return readConsoleEnd(h.dir) }

func readConsoleEnd(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, wire.ConsoleFile))
	if err != nil || len(data) == 0 {
		return ""
	}
	return "; its console ends with: " + strings.TrimSpace(string(data[max(0, len(data)-maxConsoleBytes):]))
}
