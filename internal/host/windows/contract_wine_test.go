//go:build windows

package windows

import (
	"context"
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

// wineMarks returns the behaviors that the simulated hosts of the lab, which run Wine, lack or show differently from
// Windows.
func wineMarks() []hosttest.Mark {
	return slices.Concat(wineEmulated(), wineReboots(), wineMissing(), wineDifferences())
}

func newMarks(standing hosttest.Status, reason string, of ...string) []hosttest.Mark {
	var list []hosttest.Mark
	for _, each := range of {
		list = append(list, hosttest.Mark{Of: each, Status: standing, Reason: reason})
	}
	return list
}

// wineEmulated returns the behaviors that the lab's own DLLs implement.
func wineEmulated() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.Emulated, "the lab's dismapi.dll, which stores the states of features in the registry",
			"Features.State", "Features.Enable", "Features.Disable"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-services.dll, which stores recovery actions without running them",
			"Services.Configure: restart delays are stored, and removed again",
			"Services.Configure: every kind of recovery action is stored with command and message, and removed again",
			"Services.Configure: the setting that a reported error counts as a crash is stored",
			"Services.Configure: a delayed start is stored, and removed again",
			"Services.Configure: a record of an earlier agent version always restores the same service"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-events.dll, which stores the events of the log Application in the registry",
			"EventLog.Report", "EventLog.Read"),
		newMarks(hosttest.Emulated, "the lab's firewall COM classes, which store rules in the registry without filtering",
			"Firewall.Rules", "Firewall.SetRule", "Firewall.DeleteRule"),
		newMarks(hosttest.Emulated,
			"the lab's computenetwork.dll, which stores networks and endpoints in the registry without forwarding packets",
			"Networks.Networks", "Networks.DeleteNetwork", "Networks.Endpoints", "Networks.CreateEndpoint",
			"Networks.DeleteEndpoint",
			"Networks.AttachEndpoint: an attached endpoint is listed as attached",
			"Networks.AttachEndpoint: attaching an endpoint again is no error",
			"Networks.AttachEndpoint: attaching a missing endpoint fails",
			"Networks.AttachEndpoint: an endpoint deleted by another program does not exist",
			"Networks.AttachEndpoint: the address of kube-proxy's endpoint is not listed as an address of the machine"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-wmi.dll, which stores exclusions in the registry without scanning",
			"Antivirus.Exclusions: only added exclusions exist",
			"Antivirus.Exclusions: an enumeration that fails at the first item or the end returns an error, and nothing changes",
			"Antivirus.AddExclusion: an added exclusion exists, only for its own kind",
			"Antivirus.AddExclusion: adding an existing exclusion in any case is no error and adds nothing",
			"Antivirus.AddExclusion: an empty exclusion is rejected",
			"Antivirus.RemoveExclusion: removing an exclusion keeps the others, and removing it again is no error"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-routes.dll, which creates Linux routes for Windows routes",
			"Routes.Add: an added route exists, and adding it again is no error",
			"Routes.Delete: deleting a route keeps the others, and deleting it again is no error"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-ntfs.dll, which stores access control lists without enforcing them",
			"Files.Write: a file can be restricted to administrators",
			"Files.Write: an appending write keeps the access of an existing file",
			"Files.ReadDir: a directory listing contains the access of files",
			"Logs.Rotate: the copy has the access of the log",
			"Tree.MakeDirectory: a directory can be restricted to administrators",
			"Tree.MakeDirectory: a directory can be readable for all users and writable for administrators only",
			"Tree.MakeDirectory: a directory owned by a user is foreign until it is restricted",
			"Tree.MakeDirectory: a directory without an access list is foreign until it is restricted",
			"Tree.MakeDirectory: creating an existing directory sets its access"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-ntfs.dll, which creates Unix symbolic links for Windows symbolic links",
			"Tree.Symlink",
			"Files.Write: a write to a link replaces the link",
			"Files.Write: an appending write follows a symbolic link",
			"Files.Open: reading a dangling link fails",
			"Files.Remove: removing a directory does not follow the links in it"),
	)
}

// wineReboots returns the behaviors that the lab implements for a host after Wine has shut it down.
func wineReboots() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.Emulated,
			"Wine shuts the host down on a restart request; the first process of the lab boots the host again",
			"Power.Reboot"),
		newMarks(hosttest.Emulated,
			"the lab's first process, which sets the host name from the registry at boot",
			"System.SetHostName: a new name takes effect after a reboot"),
		newMarks(hosttest.Emulated, "the lab's first process, which deletes added routes at boot",
			"Routes.Add: an added route no longer exists after a reboot"),
	)
}

// wineMissing returns the behaviors that Wine lacks completely.
func wineMissing() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.FakeOnly, "the service control manager of Wine does not restart services",
			"Services.Configure: a killed service is restarted after the restart delay",
			"Services.Configure: the last restart delay applies to all later crashes",
			"Services.Configure: a service that stops with an error is also restarted",
			"Services.Stop: recovery actions do not restart a stopped service"),
		newMarks(hosttest.FakeOnly, "the lab's computenetwork.dll creates no adapter",
			"Networks.AttachEndpoint: only an attached endpoint has an adapter"),
		newMarks(hosttest.FakeOnly, "a test host does not run in a cloud",
			"Metadata.HostName: the metadata service of a cloud returns a valid machine name"),
	)
}

// wineDifferences returns the behaviors that differ between Wine and Windows.
func wineDifferences() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.Differs, "under Wine a new name takes effect immediately",
			"System.SetHostName: a new name is pending until the next reboot, and setting the current name cancels it"),
		newMarks(hosttest.Differs, "Wine starts a service without the environment of the service",
			"Services.Configure: the program receives the environment of its service"),
		newMarks(hosttest.Differs,
			"each process under Wine recreates the trusted roots from the Linux roots, without other roots",
			"Roots.Add: an added certificate is in the store after a reboot"),
		newMarks(hosttest.Differs, "Wine lists no routes to the machine's own addresses",
			"Routes.ViaDefault: the machine's own address is among the destinations"),
		newMarks(hosttest.Differs, "Wine ignores a rename that changes only the case",
			"Tree.Rename: a rename changes the case of a name"),
	)
}

// addSimulatedParts adds the parts of the machine that the lab simulates on a Wine host.
func addSimulatedParts(t *testing.T, machine *hosttest.Machine) {
	machine.StartAntivirus = func(context.Context) error { startDefender(t); return nil }
	machine.FailList = func(list string, after int, code uint32) (mend func()) {
		return setFault(t, list, map[string]any{"FailAt": after, "FailCode": int(code)})
	}
	machine.Vanish = func(name string, code uint32, afterList bool) (vanished func() bool) {
		skip := 0
		if afterList {
			skip = 1 // the list opens the network first
		}
		setFault(t, "hns", map[string]any{"Name": name, "Skip": skip, "Vanish": 1, "Code": int(code)})
		return func() bool { return faultNumber(t, "hns", "Vanish") == 0 }
	}
}
