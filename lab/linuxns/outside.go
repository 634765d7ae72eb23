package linuxns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is the outside's handle of the program inside.
type Process struct {
	command     *exec.Cmd
	dir         string
	gracePeriod time.Duration
	lifeline    *os.File
	release     sync.Once
}

// Start runs the current program again with the same arguments and standard files, and returns when its
// namespaces are set up. The program must call Enter early. An error that matches ErrUnavailable names the
// forbidden feature.
func Start(config Config) (*Process, error) {
	if config.GracePeriod == 0 {
		config.GracePeriod = defaultGracePeriod
	}
	// Root needs no user namespace, and may create other namespaces even if users may not.
	if os.Geteuid() == 0 {
		p, err := start(config, false)
		if !errors.Is(err, syscall.EPERM) {
			return p, err
		}
	}
	return start(config, true)
}

func start(config Config, userNamespace bool) (*Process, error) {
	dir, err := os.MkdirTemp("", "wmco-lab-")
	if err != nil {
		return nil, fmt.Errorf("make the lab's directory: %w", err)
	}
	p := &Process{dir: dir, gracePeriod: config.GracePeriod}
	report, err := p.launchProcess(config, userNamespace)
	if err != nil {
		return nil, errors.Join(err, p.removeDir())
	}
	defer report.Close()
	if err := readReport(report); err != nil {
		p.Kill()
		_, waitErr := p.Wait(context.Background())
		return nil, errors.Join(err, waitErr)
	}
	return p, nil
}

func readReport(report io.Reader) error {
	var failure setupFailure
	switch err := json.NewDecoder(report).Decode(&failure); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("read how the setup of the namespace went: %w", err)
	case failure.Forbidden:
		return fmt.Errorf("%w: %s", ErrUnavailable, failure.Message)
	}
	return fmt.Errorf("set up the lab's namespace: %s", failure.Message)
}

// launchProcess starts the process; report reaches EOF when the inside is set up.
func (p *Process) launchProcess(config Config, userNamespace bool) (report *os.File, err error) {
	environment, err := inherited{Config: config, Dir: p.dir, Files: len(config.Files)}.encodeVariable()
	if err != nil {
		return nil, err
	}
	lifeline, lifelineWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeline.Close()
	report, reportWriter, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, lifelineWriter.Close())
	}
	defer reportWriter.Close()
	executable, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, lifelineWriter.Close(), report.Close())
	}
	p.lifeline = lifelineWriter
	p.command = exec.Command(executable, os.Args[1:]...)
	p.command.Args[0] = os.Args[0]
	p.command.Stdin, p.command.Stdout, p.command.Stderr = os.Stdin, os.Stdout, os.Stderr
	p.command.Env = append(append(withoutProxies(os.Environ()), config.Environ...), environment)
	p.command.ExtraFiles = append([]*os.File{lifeline, reportWriter}, config.Files...)
	p.command.SysProcAttr = processAttributes(userNamespace)
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(explainStart(err, os.ReadFile), lifelineWriter.Close(), report.Close())
	}
	return report, nil
}

// processAttributes puts the process into new namespaces and a new process group: only the outside receives an
// interrupt from the terminal, and then stops the inside.
func processAttributes(userNamespace bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Setpgid:    true,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
	}
	if userNamespace {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// withoutProxies removes variables that direct clients to an unreachable proxy.
func withoutProxies(environ []string) []string {
	var filtered []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
		default:
			filtered = append(filtered, entry)
		}
	}
	return filtered
}

// Stop requests the end of the inside and does not wait.
func (p *Process) Stop() {
	p.release.Do(func() { _ = p.lifeline.Close() })
}

// Kill kills the inside with all its processes.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // fails only after the end
}

// Wait waits for the end, removes the directory of the inside and returns the exit code. When ctx is done, Wait
// requests the end of the inside, and kills the inside after Config.GracePeriod.
func (p *Process) Wait(ctx context.Context) (exitCode int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		p.Stop()
		// The inside exits by itself after the grace period; this handles an inside that cannot.
		kill := time.AfterFunc(p.gracePeriod+time.Second, p.Kill)
		err = <-ended
		kill.Stop()
	}
	p.Stop()
	removeErr := p.removeDir()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return 1, errors.Join(fmt.Errorf("wait for the program in the namespace: %w", err), removeErr)
	}
	code := p.command.ProcessState.ExitCode()
	if code < 0 {
		code = 1 // ended by a signal
	}
	return code, removeErr
}

func (p *Process) removeDir() error {
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the lab's directory: %w", err)
	}
	return nil
}
