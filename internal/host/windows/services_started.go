package windows

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// startedBy returns the processes that belong to a service besides its own: those that its process has started, or that
// have started it, from an executable that the service's command line names. So kube-log-runner and the program that it
// runs belong together, whichever of the two the service control manager shows; a shim that containerd has started goes
// on when containerd stops. A process that began before its parent has another for a parent: Windows gives the ID of
// one that has ended to the next.
func startedBy(pid int, commandLine string, list []host.Process) []host.Process {
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
