// Package wine creates Windows hosts with Wine. The unmodified wicd.exe runs on these hosts against a real
// service control manager, registry, process table and file system. Like a real host, a Wine host is reached by
// SSH and SFTP on port 22 of an address.
//
// One host is a set of Linux namespaces (network, mount, PID, UTS, IPC) with its own first process,
// lab/wine/machine. That process mounts a Debian chroot that contains Wine, the host's own drive C: and its
// names. It boots Wine with the SSH server lab/wine/sshd, and boots again after a shutdown or restart of
// Windows. Namespaces end with their first process, and the first process ends with the creator of the host.
// Whichever process is killed, only a directory remains, which the next Prepare removes.
//
// Programs without function in Wine are replaced: PowerShell, netsh, dism and the like fail and are recorded;
// see Host.Refused. Fake DLLs replace parts that Wine lacks and a plan needs; see lab/wine/standin.
// docs/verified/lab.md lists the limits of the simulation.
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

// errUnavailable is wrapped by every error of Available.
var errUnavailable = errors.New("no Wine hosts on this machine")

// Available returns nil if the machine can run Wine hosts, otherwise an error with the reason in one line.
func Available() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return fmt.Errorf("%w: they need Linux on amd64, this is %s on %s", errUnavailable, runtime.GOOS, runtime.GOARCH)
	case os.Geteuid() != 0:
		return fmt.Errorf("%w: they need root, this is user %d: chroot, mounts and network devices are its own",
			errUnavailable, os.Geteuid())
	}
	if users, err := os.ReadFile("/proc/self/uid_map"); err != nil || !hasAllUsers(string(users)) {
		return fmt.Errorf("%w: they need root, and this is root of a user namespace only: run it as root", errUnavailable)
	}
	if status, err := os.ReadFile("/proc/self/status"); err != nil || !canMount(string(status)) {
		return fmt.Errorf("%w: they need root that may mount and make network devices, which this container keeps to itself: "+
			"run it with CAP_SYS_ADMIN and CAP_NET_ADMIN", errUnavailable)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("%w: their programs are built with Go, and there is no go command in PATH", errUnavailable)
	}
	return checkObtainable(exec.LookPath)
}

// checkObtainable returns nil if the dependencies of rootScript are installed or can be installed.
func checkObtainable(find func(program string) (string, error)) error {
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

// canMount reports, from /proc/self/status, whether this process may mount file systems and create network
// devices.
func canMount(status string) bool {
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

// hasAllUsers reports, from /proc/self/uid_map, whether this user namespace has all users of the machine.
func hasAllUsers(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
}
