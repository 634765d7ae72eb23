//go:build windows

package main

import (
	"fmt"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// watchName reports each host name that is set for the next boot. Wine would lose the name: at shutdown and at
// boot, Wine overwrites it with the Linux host name.
func (s *server) watchName() error {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `System\CurrentControlSet\Services\Tcpip\Parameters`,
		registry.QUERY_VALUE|registry.NOTIFY)
	if err != nil {
		return fmt.Errorf("watch the host name: %w", err)
	}
	defer key.Close()
	last, _, err := key.GetStringValue("Hostname")
	for err == nil {
		if err = windows.RegNotifyChangeKeyValue(windows.Handle(key), false, windows.REG_NOTIFY_CHANGE_LAST_SET, 0,
			false); err != nil {
			break
		}
		var name string
		if name, _, err = key.GetStringValue("Hostname"); err == nil && name != last {
			s.journal.write(wire.Name, name)
			last = name
		}
	}
	return fmt.Errorf("watch the host name: %w", err)
}
