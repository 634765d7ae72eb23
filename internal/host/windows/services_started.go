package windows

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// findRelatedProcesses returns the additional processes of a service: the parent and the children of its process, if the
// command line of the service contains their executable. Thus kube-log-runner and the program that it runs belong
// together, regardless of the process that the service control manager reports. A shim started by containerd does
// not belong to the service and continues when containerd stops. A process that started before its apparent parent
// has another parent, because Windows reuses the IDs of ended processes.
func findRelatedProcesses(pid int, commandLine string, list []host.Process) []host.Process {
	named := host.SplitCommandLine(commandLine)
	names := func(process host.Process) bool {
		return process.Path != "" && slices.ContainsFunc(named, func(word string) bool {
			return strings.EqualFold(word, process.Path)
		})
	}
	child := func(parent, process host.Process) bool {
		return process.Parent == parent.PID && !process.Started.Before(parent.Started)
	}
	own := slices.IndexFunc(list, func(process host.Process) bool { return process.PID == pid })
	if pid == 0 || own < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(process host.Process) bool {
		related := child(list[own], process) || child(process, list[own])
		return process.PID == pid || process.PID == 0 || !related || !names(process)
	})
}
