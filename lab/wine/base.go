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

// Base is shared by all hosts: a chroot with Wine, a Windows installation to clone, and the programs that make hosts.
type Base struct {
	// Dir is where everything lies; hosts are cloned to hosts/ below it.
	Dir string
	// Root is the chroot. It is mounted read-only in hosts.
	Root string
	// Prefix is the Windows installation: Wine's prefix, whose drive_c is drive C:.
	Prefix string

	// StandIns is the folder with what standin.Build made. The libraries are in Prefix already.
	StandIns string

	machine, sshd, refuse string     // programs
	held                  []*os.File // locks that say that this process uses what is there
}

// Prepare makes in dir (default: build/wine of the repository) what hosts are made of, unless it is there already:
// about a minute the first time, about a second later. It is cached by a digest of its inputs. Several processes may
// call it at once. Folders of hosts whose makers were killed are removed.
//
// The first time needs Debian's archive and Go's modules: a program that goes into lab/namespace calls it before, and
// again inside.
func Prepare(ctx context.Context, dir string) (*Base, error) {
	base, err := prepare(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("prepare Wine hosts: %w", err)
	}
	return base, nil
}

func prepare(ctx context.Context, dir string) (*Base, error) {
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
	held, err := lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	defer held.Close()
	b := &Base{Dir: dir}
	if err := errors.Join(sweep(filepath.Join(dir, hostsDir)), b.removeDrafts(ctx)); err != nil {
		return nil, err
	}
	if err := b.buildPrograms(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.makeRoot(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.buildLibraries(ctx, repository); err != nil {
		return nil, err
	}
	if err := b.makePrefix(ctx); err != nil {
		return nil, err
	}
	return b, b.settle()
}

// rootScript makes the chroot.
const rootScript = "hack/make-wine-root"

// makeRoot makes the chroot with Wine.
func (b *Base) makeRoot(ctx context.Context, repository string) error {
	script := filepath.Join(repository, rootScript)
	digest, err := digestFiles(script)
	if err != nil {
		return err
	}
	b.Root = filepath.Join(b.Dir, "root-"+digest)
	command := exec.CommandContext(ctx, script, b.Root)
	// The script waits for what it calls: an end is for all of them.
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

// prefixLimit is how long the first boot of a Windows installation may take.
const prefixLimit = 3 * time.Minute

// makePrefix makes the Windows installation that hosts are clones of: aside first, and then it gets its name.
func (b *Base) makePrefix(ctx context.Context) error {
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
	folder, held, err := newFolder(filepath.Join(b.Dir, hostsDir), "base")
	if err != nil {
		return err
	}
	defer held.Close()
	err = b.install(ctx, folder)
	if err == nil {
		err = os.Rename(filepath.Join(folder, wire.PrefixDir), b.Prefix)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// install lets Wine make a prefix, and replaces what only pretends.
func (b *Base) install(ctx context.Context, folder string) error {
	prefix := filepath.Join(folder, wire.PrefixDir)
	if err := os.Mkdir(prefix, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(prefix, standInRegistry), standin.Registry, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prefixLimit, fmt.Errorf("it took longer than %v", prefixLimit))
	defer cancel()
	p, err := launch(b.machine)
	if err != nil {
		return err
	}
	err = errors.Join(
		p.send(wire.Config{
			Dir: folder, Root: b.Root, Name: "base", Hosts: "127.0.0.1 localhost", Install: true, Down: time.Hour, // once is enough
			// Whatever runs first has Wine make the prefix before.
			Program: []string{"regedit", "/S", `Z:\prefix\` + standInRegistry},
		}),
		p.send(wire.Message{Do: wire.Boot}),
	)
	if err == nil {
		err = p.wait(ctx, func(s state) bool { return s.downs > 0 })
	}
	p.release()
	if err == nil {
		_, err = os.Stat(filepath.Join(prefix, "user.reg")) // written last
	}
	if err != nil {
		return fmt.Errorf("make a Windows installation: %w%s", err, console(folder))
	}
	for _, stub := range stubs {
		if err := linkProgram(prefix, b.refuse, stub); err != nil {
			return fmt.Errorf("replace %s: %w", stub, err)
		}
	}
	return errors.Join(
		b.putLibraries(prefix),
		addToRegistry(filepath.Join(prefix, "user.reg"), userRegistry),
		os.Remove(filepath.Join(prefix, standInRegistry)),
	)
}

// stubs are programs that Wine has in name only, or that product code must not call. See also registry/user.reg.
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
