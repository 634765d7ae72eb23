//go:build windows

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

var errNotAdministrator = errors.New("this program needs the rights of an administrator: run it as a member of the group " +
	"Administrators, from an elevated prompt, over SSH or as a service")

// Open gives access to the machine that the program runs on. The caller must be an administrator or SYSTEM: everything
// that the agent does needs it, and a refusal here is clearer than one later.
func Open() (host.Host, error) {
	administrator, err := isAdministrator()
	if err != nil {
		return host.Host{}, err
	}
	if !administrator {
		return host.Host{}, errNotAdministrator
	}
	for _, privilege := range []string{debugPrivilege, backupPrivilege, restorePrivilege} {
		if err := enablePrivilege(privilege); err != nil {
			return host.Host{}, err
		}
	}
	return host.Host{
		System: system{}, Power: power{}, Features: features{}, Services: services{}, Files: files{}, Tree: tree{},
		Environment: environment{}, Firewall: firewall{}, Networks: networks{}, Processes: processes{}, Probes: probes{},
		Sandboxes: sandboxes{}, Layers: layers{}, EventLog: eventLog{}, Antivirus: antivirus{}, Outbound: outbound{},
		Roots: roots{}, Routes: routes{}, Logs: logs{}, Metadata: newMetadata(),
		Registry: registryValues{},
	}, nil
}

// isAdministrator asks CheckTokenMembership, which reports whether the group is in force: in the filtered token that an
// administrator has before elevation it only denies.
func isAdministrator() (bool, error) {
	administrators, err := windows.CreateWellKnownSid(windows.WinBuiltinAdministratorsSid)
	if err != nil {
		return false, fmt.Errorf("look up the group Administrators: %w", err)
	}
	const ownToken = windows.Token(0)
	member, err := ownToken.IsMember(administrators)
	if err != nil {
		return false, fmt.Errorf("check whether this program has the rights of an administrator: %w", err)
	}
	return member, nil
}
