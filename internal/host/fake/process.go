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

// ErrProcessEnded is what every operation of a dead process returns. A goroutine cannot be ended from outside, so the
// program of a killed process may run on for a moment; but nothing that it does through its Host, its output or its
// listeners has an effect any more. (runtime.Goexit would stop it sooner, but would leave locks taken that it shares
// with others and does not free by defer.)
var ErrProcessEnded = errors.New("the process was ended")

// exitKilled is the exit code of a process that was ended by another.
const exitKilled = 1

// Program is what an executable does. It returns its exit code, and must return soon after ctx is done: for a service
// that is the request to stop, for every process its death.
type Program func(ctx context.Context, p *Process) (exitCode int)

// ProgramTable finds the program in the content of an executable. An error means that it is none.
type ProgramTable func(content []byte) (Program, error)

// Process is a running program.
type Process struct {
	PID            int
	Parent         int
	Path           string   // of the executable when it was started, links followed
	Args           []string // without the executable
	Service        string   // that it runs for; empty for others
	Environ        map[string]string
	Stdout, Stderr io.Writer
	Host           host.Host
	Machine        *Machine

	started  time.Time
	outputs  []*output
	image    *hold
	critical bool // a part of Windows, which nobody can end

	// The machine's lock guards the rest.
	ended              bool
	killed             bool
	serviceCommandLine string // that it was started with
	stopped            bool   // the service control manager has asked it to stop
	reported           bool   // its program returned: a service reports its exit code to the service control manager
	exitCode           int
	holds              []*hold
	closers            []io.Closer
	cancel             context.CancelFunc
	done               chan struct{} // closed when it has ended
	returned           chan struct{} // closed when its program has returned; nil without a program
}

// newProcess enters a process into the table. The image may be nil for parts of Windows.
func (m *Machine) newProcess(p *Process, image *node) *Process {
	p.PID, p.Machine, p.done, p.started = m.nextPID(), m, make(chan struct{}), m.options.ProgramClock.Now()
	p.started = p.started.Add(time.Duration(m.clockOffset.Load()))
	if image != nil {
		p.Path = image.path()
		p.image = image.hold(fmt.Sprintf("%s (process %d)", image.name, p.PID), true)
	}
	p.Stdout, p.Stderr = p.output(p.Stdout), p.output(p.Stderr)
	p.Host = p.host()
	m.processes[p.PID] = p
	return p
}

// newConsole makes what is behind Machine.Host.
func (m *Machine) newConsole() *Process {
	p := &Process{Machine: m, Stdout: io.Discard, Stderr: io.Discard, done: make(chan struct{})}
	p.Host = p.host()
	return p
}

func (p *Process) host() host.Host {
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

// run runs the program of a process on a goroutine of its own. The program begins when the one before it has returned,
// so that a service's second process never meets the remains of the first.
func (m *Machine) run(p *Process, program Program, before *Process) {
	ctx, cancel := context.WithCancel(m.up)
	p.cancel, p.returned = cancel, make(chan struct{})
	m.programs.Add(1)
	m.journal.append(KindProcess, "start "+p.commandLine(), 0, p.PID)
	go func() {
		defer m.programs.Done()
		defer close(p.returned)
		if before != nil && before.returned != nil {
			<-before.returned
		}
		code := exitKilled // also for a program that leaves by runtime.Goexit
		defer func() {
			m.lock()
			defer m.unlock()
			p.end(code, false)
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

// end takes a process out of the machine. Its program may not have returned yet.
func (p *Process) end(code int, killed bool) {
	if p.ended {
		return
	}
	m := p.Machine
	p.ended, p.killed, p.exitCode = true, killed, code
	delete(m.processes, p.PID)
	if p.image != nil {
		p.image.release()
	}
	for _, h := range p.holds {
		h.release()
	}
	maps.DeleteFunc(m.local, func(_ int, s *localServer) bool { return s.owner == p })
	maps.DeleteFunc(m.runtimes, func(_ string, r *localRuntime) bool { return r.owner == p })
	for _, closer := range p.closers {
		m.later(func() { _ = closer.Close() }) // nobody is left to care
	}
	if p.cancel != nil {
		p.cancel()
	}
	how := fmt.Sprintf("exit %d: %s", code, p.commandLine())
	if killed {
		how = "killed: " + p.commandLine()
	}
	m.journal.append(KindProcess, how, 0, p.PID)
	if p.Service != "" {
		m.serviceEnded(p)
	}
	close(p.done)
}

// Kill ends the process at once, as TerminateProcess does. Anyone may call it, the process itself too. The console
// cannot be killed.
func (p *Process) Kill() {
	p.Machine.lock()
	defer p.Machine.unlock()
	if p != p.Machine.console {
		p.end(exitKilled, true)
	}
}

// Exit ends a process that has no program (Spawn) by itself.
func (p *Process) Exit(code int) {
	p.Machine.lock()
	defer p.Machine.unlock()
	p.end(code, false)
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	p.Machine.lock()
	defer p.Machine.unlock()
	return p.check() == nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// check returns the error of every operation of a process that is no more.
func (p *Process) check() error {
	switch {
	case p == p.Machine.console && p.Machine.power < powerBooting:
		return fmt.Errorf("%s: %w", p.Machine.options.Name, ErrPoweredOff)
	case p.ended:
		return fmt.Errorf("process %d: %w", p.PID, ErrProcessEnded)
	}
	return nil
}

// Spawn registers a process that runs from the executable at the path and that nobody on the machine started.
func (m *Machine) Spawn(path string, args ...string) (*Process, error) {
	return m.console.Spawn(path, args...)
}

// Spawn registers a child that runs from the executable at the path. It has no program: it outlives its parent and ends
// when it is killed, exits or the machine goes down.
func (p *Process) Spawn(path string, args ...string) (child *Process, err error) {
	err = p.locked(func(m *Machine) error {
		at, err := m.drive.existing(path, true)
		if err != nil {
			return pathError("spawn", path, err)
		}
		if at.directory() {
			return pathError("spawn", path, errDenied)
		}
		child = m.newProcess(&Process{Parent: p.PID, Args: args, Path: at.path(), Environ: maps.Clone(p.Environ)}, at.node)
		m.journal.append(KindProcess, "start "+child.commandLine(), 0, child.PID)
		return nil
	})
	return child, err
}

// Hold keeps a file in use until the process ends, as an open log is.
func (p *Process) Hold(path string) error {
	return p.locked(func(m *Machine) error {
		at, err := m.drive.existing(path, true)
		if err != nil {
			return pathError("open", path, err)
		}
		if at.node != nil {
			p.share(at.node)
		}
		return nil
	})
}

// record adds to the journal what the process did.
func (p *Process) record(kind Kind, detail string, bytes int64) {
	p.Machine.journal.append(kind, detail, bytes, p.PID)
}

// output passes on what a process writes as long as it lives.
type output struct {
	p  *Process
	mu sync.Mutex // held during a write
	to io.Writer
}

func (p *Process) output(to io.Writer) io.Writer {
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

// settle waits for a write that is under way. After it, nothing of an ended process comes any more.
func (o *output) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
}

// baseName returns the file name of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '\\')+1:] }
