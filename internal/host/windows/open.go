//go:build windows

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

var errNotAdministrator = errors.New("this program requires administrator rights: run the program as a member of the group " +
	"Administrators, from an elevated prompt, over SSH or as a service")

// Open returns the local machine. The caller must be an administrator or SYSTEM. All functions of the agent require
// these rights, and an early error is clearer than a later error.
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

// isAdministrator calls CheckTokenMembership, which reports whether the group is active. In the filtered token of an
// administrator before elevation, the group is deny-only.
func isAdministrator() (bool, error) {
	administrators, err := windows.CreateWellKnownSid(windows.WinBuiltinAdministratorsSid)
	if err != nil {
		return false, fmt.Errorf("look up the group Administrators: %w", err)
	}
	const ownToken = windows.Token(0)
	member, err := ownToken.IsMember(administrators)
	if err != nil {
		return false, fmt.Errorf("check whether this program has administrator rights: %w", err)
	}
	return member, nil
}
