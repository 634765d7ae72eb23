package wine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// process is the creator's handle of the first process of a host.
type process struct {
	command  *exec.Cmd
	commands *os.File
	ended    chan struct{} // closed when this process and all other processes of the host have ended

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with each event
	state   state
	journal []Entry
}

// state is the result of the events so far.
type state struct {
	ready, on, up bool
	boots, downs  int
	err           error // why the host failed permanently
}

// launchProcess starts the first process in separate namespaces. The process then waits for its configuration.
func launchProcess(program string) (*process, error) {
	commandsReader, commands, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer commandsReader.Close()
	events, eventsWriter, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, commands.Close())
	}
	defer eventsWriter.Close()
	p := &process{command: exec.Command(program), commands: commands, ended: make(chan struct{}),
		changed: make(chan struct{})}
	p.command.Env = []string{} // nothing from the creator
	p.command.Stderr = os.Stderr
	p.command.ExtraFiles = []*os.File{commandsReader, eventsWriter}
	p.command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, // only the creator must receive an interrupt from the terminal
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
	}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a process in namespaces of its own: %w", err),
			commands.Close(), events.Close())
	}
	go p.readEvents(events)
	return p, nil
}

// readEvents processes events until the process has ended.
func (p *process) readEvents(events io.ReadCloser) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event wire.Event
		if json.Unmarshal(lines.Bytes(), &event) == nil {
			p.applyEvent(event)
		}
	}
	_ = events.Close()
	_ = p.command.Wait() // the exit status does not matter: the process must not end
	p.mu.Lock()
	p.state.ready, p.state.on, p.state.up = false, false, false
	if p.state.err == nil {
		p.state.err = errors.New("its first process has ended")
	}
	p.notifyWaiters()
	p.mu.Unlock()
	close(p.ended)
}

// applyEvent applies one event to the state.
func (p *process) applyEvent(event wire.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event.Kind {
	case wire.Ready:
		p.state.ready = true
	case wire.BootAt:
		p.state.on = true
	case wire.Up:
		p.state.up = true
		p.state.boots++
	case wire.Down:
		p.state.downs++
		p.state.on, p.state.up = false, false
	case wire.Failed:
		p.state.on, p.state.up = false, false
		p.state.err = errors.New(event.Detail)
	}
	p.journal = append(p.journal, Entry{Time: time.Now(), Kind: Kind(event.Kind), Detail: event.Detail})
	p.notifyWaiters()
}

// notifyWaiters wakes all waiters. The caller holds the lock.
func (p *process) notifyWaiters() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// awaitState waits until the state satisfies the predicate, the host has failed or ctx is done.
func (p *process) awaitState(ctx context.Context, isDesired func(state) bool) error {
	for {
		p.mu.Lock()
		current, changed := p.state, p.changed
		p.mu.Unlock()
		switch {
		case isDesired(current):
			return nil
		case current.err != nil:
			return current.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendMessage sends a configuration or a command.
func (p *process) sendMessage(message any) error {
	if err := json.NewEncoder(p.commands).Encode(message); err != nil {
		return fmt.Errorf("command the host's first process: %w", err)
	}
	return nil
}

// endTimeout is the timeout for the cleanup of a host.
const endTimeout = 20 * time.Second

// endHost ends the host and waits for its end.
func (p *process) endHost() {
	_ = p.commands.Close() // it was open
	select {
	case <-p.ended:
	case <-time.After(endTimeout):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}
