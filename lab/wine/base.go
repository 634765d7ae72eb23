package wine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	labprocess "github.com/windows-machine-config/wmco/lab/process"
	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// Base is shared by all hosts: a chroot with Wine, a Windows installation to clone, and the programs that run
// hosts.
type Base struct {
	// Dir is the directory of all files of the base. Hosts are cloned to the subdirectory hosts/.
	Dir string
	// Root is the chroot. Hosts mount the chroot read-only.
	Root string
	// Prefix is the Windows installation: the Wine prefix with drive C: in drive_c.
	Prefix string

	// FakeDLLs is the output directory of standin.Build. The libraries are already installed in Prefix.
	FakeDLLs string

	machine, sshd, refuse string     // programs
	held                  []*os.File // locks that mark the files as used by this process
}

// Prepare builds the base in dir (default: build/wine of the repository). The first run takes about a minute,
// later runs about a second: the result is cached by a digest of the inputs. Several processes may call Prepare
// at once. Directories of hosts that outlived a killed creator are removed.
//
// The first run needs access to the Debian archive and to the Go modules. A program that enters lab/linuxns
// therefore calls Prepare before entering, and again inside.
func Prepare(ctx context.Context, dir string) (*Base, error) {
	base, err := prepareBase(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("prepare Wine hosts: %w", err)
	}
	return base, nil
}

func prepareBase(ctx context.Context, dir string) (*Base, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	repository, err := labprocess.Repository()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = filepath.Join(repository, "build/wine")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	held, err := lockExclusive(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	defer held.Close()
	b := &Base{Dir: dir}
	if err := errors.Join(sweepHosts(filepath.Join(dir, hostsDir)), b.removeDrafts(ctx)); err != nil {
		return nil, err
	}
	if err := b.buildPrograms(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.createRoot(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.buildLibraries(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.createPrefix(ctx); err != nil {
		return nil, err
	}
	return b, b.lockParts()
}

// rootScript creates the chroot.
const rootScript = "hack/make-wine-root"

func (b *Base) createRoot(ctx context.Context, repository string) error {
	script := filepath.Join(repository, rootScript)
	digest, err := digestFiles(script)
	if err != nil {
		return err
	}
	b.Root = filepath.Join(b.Dir, "root-"+digest)
	command := exec.CommandContext(ctx, script, b.Root)
	// The script waits for its child processes: the signal goes to the complete process group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("make the chroot with Wine: %s: %w: %s", rootScript, err, lastLines(output.String()))
	}
	return nil
}

// prefixTimeout is the timeout for the first boot of a Windows installation.
const prefixTimeout = 3 * time.Minute

// createPrefix creates the Windows installation that hosts are cloned from: in a draft directory first, which is
// then renamed.
func (b *Base) createPrefix(ctx context.Context) error {
	digest, err := digestFiles(append(b.libraryFiles(), b.refuse)...)
	if err != nil {
		return err
	}
	inputs := append([]string{filepath.Base(b.Root), digest, userRegistry, string(standin.Registry)}, stubs...)
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\n")))
	b.Prefix = filepath.Join(b.Dir, "prefix-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(b.Prefix); err == nil {
		return nil
	}
	dir, held, err := newLockedDirectory(filepath.Join(b.Dir, hostsDir), "base")
	if err != nil {
		return err
	}
	defer held.Close()
	err = b.installPrefix(ctx, dir)
	if err == nil {
		err = os.Rename(filepath.Join(dir, wire.PrefixDir), b.Prefix)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// installPrefix creates a Wine prefix and replaces the programs without function.
func (b *Base) installPrefix(ctx context.Context, dir string) error {
	prefix := filepath.Join(dir, wire.PrefixDir)
	if err := os.Mkdir(prefix, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(prefix, fakeDLLRegistry), standin.Registry, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prefixTimeout, fmt.Errorf("it took longer than %v", prefixTimeout))
	defer cancel()
	p, err := launchProcess(b.machine)
	if err != nil {
		return err
	}
	err = errors.Join(
		p.sendMessage(wire.Config{
			Dir: dir, Root: b.Root, Name: "base", Hosts: "127.0.0.1 localhost", Install: true, BootDelay: time.Hour, // once is enough
			// no second boot is needed
			Program: []string{"regedit", "/S", `Z:\prefix\` + fakeDLLRegistry},
		}),
		p.sendMessage(wire.Message{Do: wire.Boot}),
	)
	if err == nil {
		err = p.awaitState(ctx, func(s state) bool { return s.downs > 0 })
	}
	p.endHost()
	if err == nil {
		_, err = os.Stat(filepath.Join(prefix, "user.reg")) // written last
	}
	if err != nil {
		return fmt.Errorf("make a Windows installation: %w%s", err, readConsoleEnd(dir))
	}
	for _, stub := range stubs {
		if err := linkProgram(prefix, b.refuse, stub); err != nil {
			return fmt.Errorf("replace %s: %w", stub, err)
		}
	}
	return errors.Join(
		b.installLibraries(prefix),
		addToRegistry(filepath.Join(prefix, "user.reg"), userRegistry),
		os.Remove(filepath.Join(prefix, fakeDLLRegistry)),
	)
}

// stubs are programs without function in Wine, or programs that product code must not call. See also
// registry/user.reg.
var stubs = []string{
	`C:\windows\system32\WindowsPowerShell\v1.0\powershell.exe`,
	`C:\windows\system32\certutil.exe`,
	`C:\windows\system32\dism.exe`,
	`C:\windows\system32\icacls.exe`,
	`C:\windows\system32\netsh.exe`,
	`C:\windows\system32\sc.exe`,
	`C:\windows\system32\schtasks.exe`,
	`C:\windows\system32\setx.exe`,
	`C:\windows\system32\shutdown.exe`,
	`C:\windows\system32\wevtutil.exe`,
}
