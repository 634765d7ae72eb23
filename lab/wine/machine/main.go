//go:build linux

// Command machine is the first process of a Wine host, in separate namespaces. It sets up the host as
// requested, boots Wine, and boots again after each shutdown or restart of Windows. It ends, with all processes
// and mounts of the host, when the creator of the host ends or closes the command pipe.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "machine: it must be the first process of a PID namespace: the lab starts it")
		os.Exit(2)
	}
	syscall.CloseOnExec(wire.CommandsFD)
	syscall.CloseOnExec(wire.EventsFD)
	m := &machine{events: os.NewFile(wire.EventsFD, "events")}
	commands := json.NewDecoder(bufio.NewReader(os.NewFile(wire.CommandsFD, "commands")))
	if err := commands.Decode(&m.config); err != nil {
		os.Exit(1) // the creator ended before sending a configuration
	}
	defer m.endHost()
	if err := m.setUp(); err != nil {
		m.sendEvent(wire.Failed, err.Error())
		return
	}
	m.sendEvent(wire.Ready, "")
	m.runCommands(commands)
}

// machine is the simulated host.
type machine struct {
	config   wire.Config
	events   io.Writer
	eventsMu sync.Mutex
	reaper   *reaper
	power    chan bool // the power state requested by the creator
}

// sendEvent sends an event to the creator, which may have ended.
func (m *machine) sendEvent(kind, detail string) {
	line, err := json.Marshal(wire.Event{Kind: kind, Detail: detail})
	if err != nil {
		return // two strings can always be encoded
	}
	m.eventsMu.Lock()
	defer m.eventsMu.Unlock()
	_, _ = m.events.Write(append(line, '\n'))
}

// setUp sets up the network and the mounts of the host.
func (m *machine) setUp() error {
	m.reaper, m.power = newReaper(), make(chan bool)
	if err := setUpNetwork(m.config); err != nil {
		return err
	}
	return setUpMounts(m.config)
}

// runCommands executes the commands of the creator until the command pipe is closed.
func (m *machine) runCommands(commands *json.Decoder) {
	go m.run()
	for {
		var message wire.Message
		if commands.Decode(&message) != nil {
			return // the creator closed the pipe or has ended
		}
		m.power <- message.Do == wire.Boot
	}
}

// endHost kills all other processes and removes the directory of the host. The mounts end with this process.
func (m *machine) endHost() {
	killAll()
	if m.config.Install || m.config.Dir == "" {
		return
	}
	_ = unix.Unmount(filepath.Join(m.config.Dir, wire.RootDir), unix.MNT_DETACH) // so that no file of the chroot is removed
	if mounted, err := os.ReadDir(filepath.Join(m.config.Dir, wire.RootDir)); err == nil && len(mounted) > 0 {
		return // never remove through a mount; the next Prepare removes the directory
	}
	_ = os.RemoveAll(m.config.Dir) // on failure, the next Prepare removes it
}
