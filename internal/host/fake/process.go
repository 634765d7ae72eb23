package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// ErrProcessEnded is returned by every operation of a dead process. A goroutine cannot be stopped externally, so the
// program of a killed process may continue for a moment. Operations of its Host, its output and its listeners then
// have no effect. (runtime.Goexit would stop the program sooner, but would not release shared locks that are not
// released by defer.)
var ErrProcessEnded = errors.New("the process was ended")

// exitKilled is the exit code of a killed process.
const exitKilled = 1

// Program implements an executable. It returns the exit code, and must return soon after ctx is done. The end of ctx
// is a stop request for a service, and the death of any other process.
type Program func(ctx context.Context, p *Process) (exitCode int)

// ProgramTable returns the program for the content of an executable, or an error if the content is not a program.
type ProgramTable func(content []byte) (Program, error)

// Process is a running program.
type Process struct {
	PID            int
	Parent         int
	Path           string   // of the executable at the start, links resolved
	Args           []string // without the executable
	Service        string   // name of the service; empty for ordinary processes
	Environ        map[string]string
	Stdout, Stderr io.Writer
	Host           host.Host
	Machine        *Machine

	started  time.Time
	outputs  []*output
	image    *hold
	critical bool // a process of Windows that cannot be killed

	// The machine's lock guards the rest.
	ended              bool
	killed             bool
	serviceCommandLine string // command line at the start
	stopped            bool   // the service control manager has requested a stop
	reported           bool   // the program returned: a service reports its exit code to the service control manager
	exitCode           int
	holds              []*hold
	closers            []io.Closer
	cancel             context.CancelFunc
	done               chan struct{} // closed when the process has ended
	returned           chan struct{} // closed when the program has returned; nil without a program
}

// newProcess adds a process to the table. image may be nil for processes of Windows.
func (m *Machine) newProcess(p *Process, image *node) *Process {
	p.PID, p.Machine, p.done, p.started = m.nextPID(), m, make(chan struct{}), m.options.ProgramClock.Now()
	p.started = p.started.Add(time.Duration(m.clockOffset.Load()))
	if image != nil {
		p.Path = image.fullPath()
		p.image = image.addHold(fmt.Sprintf("%s (process %d)", image.name, p.PID), true)
	}
	p.Stdout, p.Stderr = p.wrapOutput(p.Stdout), p.wrapOutput(p.Stderr)
	p.Host = p.newHost()
	m.processes[p.PID] = p
	return p
}

// newConsole returns the process of Machine.Host.
func (m *Machine) newConsole() *Process {
	p := &Process{Machine: m, Stdout: io.Discard, Stderr: io.Discard, done: make(chan struct{})}
	p.Host = p.newHost()
	return p
}

func (p *Process) newHost() host.Host {
	return host.Host{
		System: system{p}, Power: power{p}, Features: featureSet{p}, Services: serviceManager{p},
		Files: files{p}, Tree: tree{p},
		Environment: environment{p}, Firewall: firewall{p}, Networks: networks{p},
		Processes: processTable{p}, Probes: probes{p}, Sandboxes: sandboxes{p}, Layers: layers{p},
		EventLog: eventLog{p}, Antivirus: antivirus{p}, Outbound: outbound{p},
		Roots: roots{p}, Routes: routes{p}, Logs: logs{p}, Metadata: metadata{p},
		Registry: registryValues{p},
	}
}

// run runs the program of a process on a separate goroutine. The program starts after the previous program has
// returned, so that the second process of a service never encounters leftovers of the first.
func (m *Machine) run(p *Process, program Program, before *Process) {
	ctx, cancel := context.WithCancel(m.up)
	p.cancel, p.returned = cancel, make(chan struct{})
	m.programs.Add(1)
	m.journal.appendEntry(KindProcess, "start "+p.commandLine(), 0, p.PID)
	go func() {
		defer m.programs.Done()
		defer close(p.returned)
		if before != nil && before.returned != nil {
			<-before.returned
		}
		code := exitKilled // also if the program leaves by runtime.Goexit
		defer func() {
			m.lock()
			defer m.unlock()
			p.endProcess(code, false)
		}()
		code = program(ctx, p)
		m.lock()
		defer m.unlock()
		p.reported = true
	}()
}

func (p *Process) commandLine() string {
	return host.CommandLine(append([]string{p.Path}, p.Args...)...)
}

// endProcess removes a process from the machine. Its program may not have returned yet.
func (p *Process) endProcess(code int, killed bool) {
	if p.ended {
		return
	}
	m := p.Machine
	p.ended, p.killed, p.exitCode = true, killed, code
	delete(m.processes, p.PID)
	if p.image != nil {
		p.image.releaseNode()
	}
	for _, h := range p.holds {
		h.releaseNode()
	}
	maps.DeleteFunc(m.local, func(_ int, s *localServer) bool { return s.owner == p })
	maps.DeleteFunc(m.runtimes, func(_ string, r *localRuntime) bool { return r.owner == p })
	for _, closer := range p.closers {
		m.deferUntilUnlock(func() { _ = closer.Close() }) // the owner has ended
	}
	if p.cancel != nil {
		p.cancel()
	}
	how := fmt.Sprintf("exit %d: %s", code, p.commandLine())
	if killed {
		how = "killed: " + p.commandLine()
	}
	m.journal.appendEntry(KindProcess, how, 0, p.PID)
	if p.Service != "" {
		m.serviceEnded(p)
	}
	close(p.done)
}

// Kill ends the process at once, like TerminateProcess. Any caller may call it, including the process itself. The
// console cannot be killed.
func (p *Process) Kill() {
	p.Machine.lock()
	defer p.Machine.unlock()
	if p != p.Machine.console {
		p.endProcess(exitKilled, true)
	}
}

// Exit ends a process without a program (see Spawn) with an exit code.
func (p *Process) Exit(code int) {
	p.Machine.lock()
	defer p.Machine.unlock()
	p.endProcess(code, false)
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	p.Machine.lock()
	defer p.Machine.unlock()
	return p.checkAlive() == nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// checkAlive returns an error if the process has ended, or if the process is the console and the machine is off.
func (p *Process) checkAlive() error {
	switch {
	case p == p.Machine.console && p.Machine.power < powerBooting:
		return fmt.Errorf("%s: %w", p.Machine.options.Name, ErrPoweredOff)
	case p.ended:
		return fmt.Errorf("process %d: %w", p.PID, ErrProcessEnded)
	}
	return nil
}

// Spawn registers a process of the executable at the path, without a parent on the machine.
func (m *Machine) Spawn(path string, args ...string) (*Process, error) {
	return m.console.Spawn(path, args...)
}

// Spawn registers a child process of the executable at the path. The child has no program. It outlives the parent and
// ends when it is killed, exits, or the machine shuts down.
func (p *Process) Spawn(path string, args ...string) (child *Process, err error) {
	err = p.runLocked(func(m *Machine) error {
		at, err := m.drive.resolveExisting(path, true)
		if err != nil {
			return pathError("spawn", path, err)
		}
		if at.isDirectory() {
			return pathError("spawn", path, errDenied)
		}
		child = m.newProcess(&Process{Parent: p.PID, Args: args, Path: at.fullPath(), Environ: maps.Clone(p.Environ)}, at.node)
		m.journal.appendEntry(KindProcess, "start "+child.commandLine(), 0, child.PID)
		return nil
	})
	return child, err
}

// Hold keeps a file in use until the process ends, like an open log.
func (p *Process) Hold(path string) error {
	return p.runLocked(func(m *Machine) error {
		at, err := m.drive.resolveExisting(path, true)
		if err != nil {
			return pathError("open", path, err)
		}
		if at.node != nil {
			p.shareFile(at.node)
		}
		return nil
	})
}

// recordEntry adds an action of the process to the journal.
func (p *Process) recordEntry(kind Kind, detail string, bytes int64) {
	p.Machine.journal.appendEntry(kind, detail, bytes, p.PID)
}

// output forwards the output of a process while the process is alive.
type output struct {
	p  *Process
	mu sync.Mutex // held during a write
	to io.Writer
}

func (p *Process) wrapOutput(to io.Writer) io.Writer {
	if to == nil {
		return io.Discard
	}
	for _, o := range p.outputs {
		if reflect.TypeOf(to).Comparable() && o.to == to { // one writer for both streams, as in a shell's 2>&1: never two writes at a time
			return o
		}
	}
	o := &output{p: p, to: to}
	p.outputs = append(p.outputs, o)
	return o
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.p.done:
		return 0, ErrProcessEnded
	default:
		return o.to.Write(b)
	}
}

// awaitWrite waits for a write in progress. After the end of the process, no further output follows.
func (o *output) awaitWrite() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '\\')+1:] }
