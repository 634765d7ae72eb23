//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// wine is the Wine binary. /usr/bin/wine is only a shell script around it.
const wine = "/usr/lib/wine/wine64"

// environment is the complete environment of Wine.
var environment = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
	"XDG_RUNTIME_DIR=/run",
	"WINEPREFIX=" + wire.MountedPrefix, "WINEDEBUG=-all",
	"WINEDLLOVERRIDES=mscoree,mshtml=;winemenubuilder.exe=d", // suppresses the prompts to install Mono and Gecko
}

// shutdownTimeout is the timeout for the end of Windows after its last program has ended. Then the remaining
// processes are killed.
const shutdownTimeout = 10 * time.Second

// clientsInterval is the interval between searches for new processes while Windows ends.
const clientsInterval = 20 * time.Millisecond

// run boots and stops the host as the creator requests.
func (m *machine) run() {
	for {
		if on := <-m.power; on {
			m.runWhileOn()
		}
	}
}

// runWhileOn boots the host repeatedly until the power is cut.
func (m *machine) runWhileOn() {
	for {
		ended, err := m.bootWindows()
		if err != nil {
			m.sendEvent(wire.Failed, err.Error())
			return
		}
		if !m.waitWhileUp(ended) || !m.waitWhileDown() {
			return
		}
	}
}

// waitWhileUp waits for the end of a boot; false if the power was cut.
func (m *machine) waitWhileUp(ended <-chan string) bool {
	over := make(chan struct{})
	defer close(over)
	hung := m.watchHang(over)
	for {
		select {
		case reason := <-ended:
			m.sendEvent(wire.Down, reason)
			return true
		case <-hung:
			killAll()
			<-ended
			m.sendEvent(wire.Down, "the SSH server did not answer for "+m.config.HangTimeout.String()+": the host was reset")
			return true
		case on := <-m.power:
			if on {
				continue
			}
			killAll()
			<-ended
			m.sendEvent(wire.Down, "the plug was pulled")
			return false
		}
	}
}

// waitWhileDown waits until the next boot is due; false if the power was cut.
func (m *machine) waitWhileDown() bool {
	timer := time.NewTimer(m.config.BootDelay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case on := <-m.power:
			if !on {
				return false
			}
		}
	}
}

// bootWindows starts Windows with the program that keeps it running. The channel receives the reason for the end after
// all processes have ended.
func (m *machine) bootWindows() (ended <-chan string, err error) {
	name, err := m.assignHostName()
	if err != nil {
		return nil, err
	}
	if m.config.Interface != "" {
		if err := dropRoutes(); err != nil {
			return nil, err
		}
	}
	m.sendEvent(wire.BootAt, name)
	console, err := os.OpenFile(filepath.Join(m.config.Dir, wire.ConsoleFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the host's console: %w", err)
	}
	defer console.Close()
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer devNull.Close()
	output, outputWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outputWriter.Close()
	status, err := m.reaper.start(wine, append([]string{wine}, m.config.Program...), &os.ProcAttr{
		Dir: "/", Env: environment, Files: []*os.File{devNull, outputWriter, console},
		Sys: &syscall.SysProcAttr{Chroot: filepath.Join(m.config.Dir, wire.RootDir), Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start Wine: %w", err)
	}
	go m.relayEvents(output)
	end := make(chan string, 1)
	go func() {
		code := <-status
		end <- m.endWindows(code)
	}()
	return end, nil
}

// endWindows ends Windows after the program that keeps it running has ended, and returns the reason. At the end of a
// forced shutdown, Wine kills all programs and then starts the services again for some seconds. Windows does
// not do that, so these services are killed. Only Wine's server ends by itself, with its last client, because
// it writes the registry then.
func (m *machine) endWindows(code int) string {
	reason := fmt.Sprintf("Windows was shut down: the SSH server ended with status %d", code)
	for limit := time.Now().Add(shutdownTimeout); !m.reaper.waitUntilAlone(clientsInterval); {
		if time.Now().After(limit) {
			reason += ", and Wine's server had to be killed"
			killAll()
			m.reaper.waitUntilAlone(shutdownTimeout)
			break
		}
		if !m.config.Install {
			m.killClients()
		}
	}
	return reason
}

// killClients kills all processes except Wine's server.
func (m *machine) killClients() {
	names, err := filepath.Glob(filepath.Join(m.config.Dir, wire.RootDir, "proc/[0-9]*/comm"))
	if err != nil {
		return // the pattern is valid
	}
	for _, path := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if name, readErr := os.ReadFile(path); err != nil || readErr != nil || pid == 1 ||
			strings.HasPrefix(string(name), "wineserver") {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
	}
}

// relayEvents forwards the events of the SSH server.
func (m *machine) relayEvents(output io.ReadCloser) {
	defer output.Close()
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event wire.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Kind == "" {
			continue
		}
		if event.Kind == wire.Name {
			if err := m.setName(event.Detail); err != nil {
				event.Detail = err.Error()
			}
		}
		m.sendEvent(event.Kind, event.Detail)
	}
}

// assignHostName sets the host name, because Wine reads the computer name from Linux at each boot. The registry
// contains the name of the previous boot, or a name that was set for this boot.
func (m *machine) assignHostName() (string, error) {
	name := m.config.Name
	registry, err := os.ReadFile(filepath.Join(m.config.Dir, wire.PrefixDir, "system.reg"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // missing before the very first boot
		return "", fmt.Errorf("read the computer name: %w", err)
	}
	if pending := pendingName(registry); pending != "" {
		name = pending
	}
	return name, m.setName(name)
}

// setName sets the Linux host name and adds it to the hosts file. Otherwise Wine waits for name servers.
func (m *machine) setName(name string) error {
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name %q: %w", name, err)
	}
	address := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if m.config.Address.IsValid() {
		address = m.config.Address.Addr()
	}
	hosts := fmt.Sprintf("%s\n%s %s\n", m.config.Hosts, address, name)
	if err := os.WriteFile(filepath.Join(m.config.Dir, wire.EtcDir, "hosts"), []byte(hosts), 0o644); err != nil {
		return fmt.Errorf("tell the host its name: %w", err)
	}
	return nil
}

// pendingName returns the host name that the registry has for the next boot. Of two values the last wins, as in
// Wine.
func pendingName(registry []byte) (name string) {
	var inKey bool
	for line := range bytes.Lines(registry) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '[' {
			inKey = bytes.HasPrefix(bytes.ToLower(line), []byte(`[system\\controlset001\\services\\tcpip\\parameters]`))
			continue
		}
		if value, ok := bytes.CutPrefix(line, []byte(`"Hostname"="`)); ok && inKey {
			name = string(bytes.TrimSuffix(value, []byte(`"`)))
		}
	}
	return name
}
