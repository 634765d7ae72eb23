// Package wine makes Windows hosts out of Wine: the unmodified wicd.exe runs on them against a real service control
// manager, registry, process table and file system, and is reached as a real host is, by SSH and SFTP on port 22 of an
// address.
//
// One host is a set of Linux namespaces (network, mount, PID, UTS, IPC) with its own first process, lab/wine/machine,
// which mounts a Debian chroot that holds Wine, the host's own drive C: and its names, boots Wine with the SSH server
// lab/wine/sshd in it, and boots again when Windows was shut down or restarted. Namespaces end with their first
// process, and that ends with the process that made the host: whatever is killed, nothing stays but a folder, which the
// next Prepare removes.
//
// Programs that Wine only pretends to have are replaced: PowerShell, netsh, dism and the like fail and are recorded;
// see Host.Refused. DLLs stand in for parts that Wine lacks and a plan needs; see lab/wine/standin. docs/verified/lab.md
// lists the limits of all this.
package wine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// errUnavailable is wrapped by every answer of Available.
var errUnavailable = errors.New("no Wine hosts on this machine")

// Available returns nil if Wine hosts can be made, else an error that says in one line why not.
func Available() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return fmt.Errorf("%w: they need Linux on amd64, this is %s on %s", errUnavailable, runtime.GOOS, runtime.GOARCH)
	case os.Geteuid() != 0:
		return fmt.Errorf("%w: they need root, this is user %d: chroot, mounts and network devices are its own",
			errUnavailable, os.Geteuid())
	}
	if users, err := os.ReadFile("/proc/self/uid_map"); err != nil || !ownsAllUsers(string(users)) {
		return fmt.Errorf("%w: they need root, and this is root of a user namespace only: run it as root", errUnavailable)
	}
	if status, err := os.ReadFile("/proc/self/status"); err != nil || !mayMount(string(status)) {
		return fmt.Errorf("%w: they need root that may mount and make network devices, which this container keeps to itself: "+
			"run it with CAP_SYS_ADMIN and CAP_NET_ADMIN", errUnavailable)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("%w: their programs are built with Go, and there is no go command in PATH", errUnavailable)
	}
	return obtainable(exec.LookPath)
}

// obtainable is nil when what rootScript needs is there, or can be installed.
func obtainable(find func(program string) (string, error)) error {
	if _, err := find("apt-get"); err == nil {
		return nil
	}
	for _, program := range []string{"mmdebstrap", standin.Compiler} {
		if _, err := find(program); err != nil {
			return fmt.Errorf("%w: they need %s, and there is no apt-get in PATH to install it: run it on Debian, or install that", errUnavailable, program)
		}
	}
	return nil
}

// mayMount tells from /proc/self/status whether this process may mount file systems and make network devices.
func mayMount(status string) bool {
	for line := range strings.Lines(status) {
		digits, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
		capabilities, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		return err == nil && capabilities&needed == needed
	}
	return false
}

// ownsAllUsers tells from /proc/self/uid_map whether this user namespace has all users of the machine.
func ownsAllUsers(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
}
