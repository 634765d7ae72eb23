package linuxns

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// settings are the kernel settings that may forbid user namespaces, with the forbidding value and the remedy.
var settings = []struct {
	path, forbids, remedy string
}{
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
}

// settingRemedies returns a remedy for each setting of this machine that forbids user namespaces.
func settingRemedies(read func(path string) ([]byte, error)) []string {
	var remedies []string
	for _, setting := range settings {
		// A missing setting forbids nothing.
		if value, err := read(setting.path); err == nil && strings.TrimSpace(string(value)) == setting.forbids {
			name := strings.ReplaceAll(strings.TrimPrefix(setting.path, "/proc/sys/"), "/", ".")
			remedies = append(remedies, fmt.Sprintf("%s is %s: run `%s`", name, setting.forbids, setting.remedy))
		}
	}
	return remedies
}

// explainStart returns the reason why the process could not start in namespaces.
func explainStart(err error, read func(path string) ([]byte, error)) error {
	switch {
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w: %w: the kernel is built without one of user, network, mount, UTS and PID namespaces",
			ErrUnavailable, err)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS),
		errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", ErrUnavailable, explainForbidden(err, read))
	}
	return fmt.Errorf("start the program in a namespace: %w", err)
}

// explainForbidden adds the setting that forbids namespaces, as far as it can be detected.
func explainForbidden(err error, read func(path string) ([]byte, error)) error {
	if remedies := settingRemedies(read); len(remedies) > 0 {
		return fmt.Errorf("%w; %s; or run as root", err, strings.Join(remedies, "; "))
	}
	return fmt.Errorf("%w; no setting that forbids it was found: in a container the runtime may forbid it (for Docker and Podman: "+
		"--security-opt seccomp=unconfined --cap-add SYS_ADMIN); or run as root", err)
}
