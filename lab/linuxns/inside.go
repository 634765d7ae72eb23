package linuxns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Environment is the environment of the program inside the namespaces.
type Environment struct {
	// Dir is an empty directory that is removed at the end, also after a failure of the program.
	Dir string
	// Files are the files of Config.Files.
	Files []*os.File
}

// errOutside is the reason why the context of the inside ends.
var errOutside = errors.New("the program outside of the namespace has ended, or asked for the end")

// Enter sets up the inside and reports the result to the outside, so that a failure needs no further report. The
// context ends with the program outside, or when Stop is called there. If the process is still running after
// Config.GracePeriod, it exits, and all other processes inside end with it.
func Enter(parent context.Context) (context.Context, *Environment, error) {
	config, err := decodeConfig(os.Getenv(variable))
	if err == nil {
		err = config.setUp()
	}
	if err := reportSetup(err); err != nil {
		return nil, nil, fmt.Errorf("set up the lab's namespace: %w", err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	go config.watchOutside(cancel)
	environment := &Environment{Dir: config.Dir}
	for i := range config.Files {
		syscall.CloseOnExec(firstFileFD + i)
		environment.Files = append(environment.Files, os.NewFile(uintptr(firstFileFD+i), fmt.Sprintf("inherited-%d", i)))
	}
	return ctx, environment, nil
}

// reportSetup reports a failure of the setup, or success, to the outside.
func reportSetup(failure error) error {
	file := os.NewFile(reportFD, "report")
	defer file.Close()
	if failure == nil {
		return nil
	}
	message := setupFailure{Message: failure.Error()}
	if errors.Is(failure, fs.ErrPermission) {
		message = setupFailure{Message: explainForbidden(failure, os.ReadFile).Error(), Forbidden: true}
	}
	return errors.Join(failure, json.NewEncoder(file).Encode(message))
}

// watchOutside ends the inside with the outside, even after a kill.
func (i inherited) watchOutside(cancel context.CancelCauseFunc) {
	lifeline := os.NewFile(lifelineFD, "lifeline")
	_, _ = io.Copy(io.Discard, lifeline) // Nothing is ever written: this returns when the outside ends.
	cancel(errOutside)
	time.Sleep(i.GracePeriod)
	_ = os.RemoveAll(i.Dir)
	os.Exit(1)
}

func (i inherited) setUp() error {
	if err := os.Unsetenv(variable); err != nil { // Children must not detect that they run inside.
		return err
	}
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(reportFD)
	if err := addAddresses(i.Addresses); err != nil {
		return err
	}
	if i.HostName != "" {
		if err := unix.Sethostname([]byte(i.HostName)); err != nil {
			return fmt.Errorf("set the host name: %w", err)
		}
	}
	// Mounts in this namespace are not visible outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make all mounts private: %w", err)
	}
	// Without this mount, /proc/<pid> shows other processes. If the machine is a container, the mount may be
	// forbidden; nothing depends on it.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	for path, content := range map[string]string{
		"/etc/hosts":       hostsFile(i.Names),
		"/etc/resolv.conf": "# No name server: names that are not in /etc/hosts do not exist.\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
	} {
		if err := i.coverFile(path, content); err != nil {
			return err
		}
	}
	return nil
}

// coverFile mounts other content over a file.
func (i inherited) coverFile(path, content string) error {
	file := filepath.Join(i.Dir, "etc", filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return err
	}
	err := unix.Mount(file, path, "", unix.MS_BIND, "")
	if path == "/etc/resolv.conf" && errors.Is(err, fs.ErrNotExist) {
		return nil // Without the file, 127.0.0.1 is the name server anyway.
	}
	if err != nil {
		return fmt.Errorf("mount over %s: %w", path, err)
	}
	return nil
}

// hostsFile returns a hosts file with one line per name.
func hostsFile(names map[string]netip.Addr) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "%s %s\n", names[name], name)
	}
	return b.String()
}
