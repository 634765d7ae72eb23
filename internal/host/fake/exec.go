package fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// ExecRequest is a process to run.
type ExecRequest struct {
	Path           string // absolute, or a name for FindExecutable
	Args           []string
	Environ        map[string]string // overrides the machine's environment
	Stdout, Stderr io.Writer         // nil: discarded
}

// Exec runs an ordinary process, a child of the SSH server, and waits for its end. If ctx is done or the process is
// killed, the error is ErrProcessEnded. If no process can be started, the error is ErrNotExist, ErrNotExecutable or
// ErrPoweredOff. Exec does not wait for the goroutine of a killed program.
func (m *Machine) Exec(ctx context.Context, request ExecRequest) (exitCode int, err error) {
	m.journal.Append(KindExec, host.CommandLine(append([]string{request.Path}, request.Args...)...), 0)
	p, err := m.startExecutable(request)
	if err != nil {
		return 0, fmt.Errorf("run %s on %s: %w", request.Path, m.options.Name, err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
	for _, output := range p.outputs {
		output.awaitWrite()
	}
	m.lock()
	defer m.unlock()
	if p.killed {
		return p.exitCode, fmt.Errorf("%s on %s, process %d: %w", request.Path, m.options.Name, p.PID, ErrProcessEnded)
	}
	return p.exitCode, nil
}

func (m *Machine) startExecutable(request ExecRequest) (*Process, error) {
	image, data, err := m.loadExecutable(request.Path)
	if err != nil {
		return nil, err
	}
	program, err := m.findProgram(data)
	if err != nil {
		return nil, err
	}
	m.lock()
	defer m.unlock()
	if m.power < powerBooting {
		return nil, ErrPoweredOff
	}
	merged := m.environment.copyVariables()
	for name, value := range request.Environ {
		merged.setVariable(name, value)
	}
	p := m.newProcess(&Process{
		Parent: m.processNamed("sshd.exe"), Args: request.Args, Environ: merged.valuesByName(), Stdout: request.Stdout,
		Stderr: request.Stderr,
	}, image)
	m.run(p, program, nil)
	return p, nil
}

// loadExecutable finds and reads an executable.
func (m *Machine) loadExecutable(name string) (*node, []byte, error) {
	m.lock()
	defer m.unlock()
	if m.power < powerBooting {
		return nil, nil, ErrPoweredOff
	}
	at, err := m.resolveCommand(name)
	switch {
	case err != nil:
		return nil, nil, err
	case at.mount != nil:
		return nil, nil, fmt.Errorf("%s is in a mounted directory: %w", name, ErrNotExecutable)
	case at.isDirectory():
		return nil, nil, errDenied
	case at.node.content == nil:
		return at.node, nil, nil
	}
	return at.node, at.node.content.data, nil
}

// findProgram returns the program of an executable. The table is external code, so the machine must not be locked.
func (m *Machine) findProgram(data []byte) (Program, error) {
	if program := systemProgram(data); program != nil {
		return program, nil
	}
	if m.options.Programs == nil {
		return nil, ErrNotExecutable
	}
	program, err := m.options.Programs(data)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotExecutable, err)
	}
	if program == nil {
		return nil, ErrNotExecutable
	}
	return program, nil
}

// FindExecutable finds an executable as CreateProcess does: by absolute path, or by name in System32 and the
// directories of the Path variable. The extension .exe may be omitted.
func (m *Machine) FindExecutable(name string) (string, error) {
	m.lock()
	defer m.unlock()
	at, err := m.resolveCommand(name)
	if err != nil {
		return "", fmt.Errorf("find %s on %s: %w", name, m.options.Name, err)
	}
	return at.fullPath(), nil
}

func (m *Machine) resolveCommand(name string) (resolvedPath, error) {
	if strings.ContainsAny(name, `\/:`) {
		return m.resolveExecutable(name)
	}
	folders := strings.Split(`C:\Windows\System32;`+m.environment.valuesByName()["Path"], ";")
	for _, folder := range folders {
		at, err := m.resolveExecutable(strings.TrimRight(folder, `\`) + `\` + name)
		if err == nil && !at.isDirectory() {
			return at, nil
		}
	}
	return resolvedPath{}, errNotFound
}

func (m *Machine) resolveExecutable(name string) (resolvedPath, error) {
	at, err := m.drive.resolveExisting(name, true)
	if err != nil && path.Ext(baseName(name)) == "" {
		return m.drive.resolveExisting(name+".exe", true)
	}
	return at, err
}

// systemContent returns the content of an executable of Windows. Daemons idle until they are stopped. All other
// executables fail, so that no caller assumes an effect.
func systemContent(name string, daemon bool) []byte {
	if daemon {
		return []byte(systemDaemon + name)
	}
	return []byte(systemTool + name)
}

const (
	systemDaemon = "MZ simulated Windows daemon "
	systemTool   = "MZ simulated Windows tool "
)

func systemProgram(data []byte) Program {
	switch {
	case bytes.HasPrefix(data, []byte(systemDaemon)):
		return func(ctx context.Context, _ *Process) int { <-ctx.Done(); return 0 }
	case bytes.HasPrefix(data, []byte(systemTool)):
		return func(_ context.Context, p *Process) int {
			_, _ = fmt.Fprintf(p.Stderr, "%s is not part of this test machine.\r\n", baseName(p.Path)) // the reader may have ended
			return 1
		}
	}
	return nil
}
