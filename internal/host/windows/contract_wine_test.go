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
		newMarks(hosttest.Emulated, "the lab's dismapi.dll, which keeps the states of features in the registry",
			"Features.State", "Features.Enable", "Features.Disable"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-services.dll, which keeps recovery actions and carries none out",
			"Services.Configure: restart delays are kept, and taken away again",
			"Services.Configure: every kind of action after crashes is kept, with command and message, and taken away again",
			"Services.Configure: whether a reported error counts as a crash is kept",
			"Services.Configure: a delayed start is kept, and taken away again",
			"Services.Configure: the record of an earlier version of the agent restores the same service each time"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-events.dll, which keeps the events of the log Application in the registry",
			"EventLog.Report", "EventLog.Read"),
		newMarks(hosttest.Emulated, "the lab's firewall COM classes, which keep rules in the registry and filter nothing",
			"Firewall.Rules", "Firewall.SetRule", "Firewall.DeleteRule"),
		newMarks(hosttest.Emulated,
			"the lab's computenetwork.dll, which keeps networks and endpoints in the registry and moves no packet",
			"Networks.Networks", "Networks.DeleteNetwork", "Networks.Endpoints", "Networks.CreateEndpoint",
			"Networks.DeleteEndpoint",
			"Networks.AttachEndpoint: an attached endpoint is listed so",
			"Networks.AttachEndpoint: to attach again is no error",
			"Networks.AttachEndpoint: what is not there cannot be attached",
			"Networks.AttachEndpoint: an endpoint that is deleted meanwhile is not there",
			"Networks.AttachEndpoint: the adapter of kube-proxy's endpoint is not taken for the machine's own"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-wmi.dll, which keeps exclusions in the registry and scans nothing",
			"Antivirus.Exclusions: it has none that nobody has added",
			"Antivirus.Exclusions: a list that fails at its first item or at its end is no shorter list, and nothing changes",
			"Antivirus.AddExclusion: an added exclusion is there, of its own kind only",
			"Antivirus.AddExclusion: adding one again, in whichever case, is no error and adds none",
			"Antivirus.AddExclusion: an exclusion of nothing is refused",
			"Antivirus.RemoveExclusion: a removed exclusion is gone and leaves the others, and removing it again is no error"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-routes.dll, which makes routes of Linux out of those of Windows",
			"Routes.Add: an added route is there, also when it is added again",
			"Routes.Delete: a deleted route is gone and leaves the others, and deleting it again is no error"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-ntfs.dll, which keeps access control lists that nobody is held to",
			"Files.Write: a file for administrators is for nobody else",
			"Files.Write: an appending write leaves the access of a file that is there",
			"Files.ReadDir: a listed file has its access",
			"Logs.Rotate: the copy is for those who may read the log",
			"Tree.MakeDirectory: a folder for administrators is for nobody else",
			"Tree.MakeDirectory: a folder that all may read is changed by administrators only",
			"Tree.MakeDirectory: a folder of a user's is foreign until it is closed",
			"Tree.MakeDirectory: a folder that everyone may change, for lack of an access list, is foreign until it is closed",
			"Tree.MakeDirectory: making a folder that is there sets who may use it, both ways"),
		newMarks(hosttest.Emulated, "the lab's wmco-lab-ntfs.dll, which makes symbolic links of Unix out of those of Windows",
			"Tree.Symlink",
			"Files.Write: a write to a link replaces the link",
			"Files.Write: an appending write follows a symbolic link",
			"Files.Open: a link that leads nowhere cannot be read",
			"Files.Remove: removing a folder does not follow the links in it"),
	)
}

// wineReboots returns the behaviors that the lab implements for a host after Wine has shut it down.
func wineReboots() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.Emulated,
			"Wine ends the host when it is asked for a restart; what boots it again is the lab's first process",
			"Power.Reboot"),
		newMarks(hosttest.Emulated,
			"the lab's first process, which gives the host the name that is in the registry when it boots",
			"System.SetHostName: a new name is in force after a reboot"),
		newMarks(hosttest.Emulated, "the lab's first process, which takes added routes away when it boots the host",
			"Routes.Add: an added route is gone after a reboot"),
	)
}

// wineMissing returns the behaviors that Wine lacks completely.
func wineMissing() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.FakeOnly, "Wine's service control manager restarts no service",
			"Services.Configure: a killed service is restarted after its delay",
			"Services.Configure: the last restart delay counts for all later crashes",
			"Services.Configure: a service that stops itself with an error is restarted too",
			"Services.Stop: a stopped service is not restarted by its recovery actions"),
		newMarks(hosttest.FakeOnly, "the lab's computenetwork.dll makes no adapter",
			"Networks.AttachEndpoint: the machine has an adapter for the endpoint, and for no other"),
		newMarks(hosttest.FakeOnly, "a test host is in no cloud",
			"Metadata.HostName: in a cloud with a metadata service the machine has a legal name"),
	)
}

// wineDifferences returns the behaviors that differ between Wine and Windows.
func wineDifferences() []hosttest.Mark {
	return slices.Concat(
		newMarks(hosttest.Differs, "under Wine a new name is in force at once for those who ask for it",
			"System.SetHostName: a new name waits for the next reboot, and the present one calls it off"),
		newMarks(hosttest.Differs, "Wine starts a service without the environment of its own",
			"Services.Configure: a service's own environment reaches its program"),
		newMarks(hosttest.Differs,
			"each process under Wine makes the trusted roots anew from those of Linux, and forgets all others",
			"Roots.Add: an added certificate is in the store after a reboot"),
		newMarks(hosttest.Differs, "Wine lists no routes to the machine's own addresses",
			"Routes.ViaDefault: the machine's own address is among the routes"),
		newMarks(hosttest.Differs, "Wine takes a rename to another case for nothing to do",
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
