package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Ended returns the state of an entry of status.disruptions. An ended entry is removed from the list. A failed entry
// no longer counts, whether ended or not. A failed entry that has not ended stays on the list as the record of a
// change without recovery, above all of a canary. It ends when the node or MachineSet recovers or no longer exists,
// or when the disruption is requested again. why is the reason, empty for an entry that continues.
func Ended(
	d v1alpha1.Disruption, pool NodePool, settings Settings, now time.Time,
) (ended, failed bool, why string) {
	overdue := now.Sub(d.Since.Time) >= settings.FailureDeadline
	if d.Machine != "" {
		ended, failed, why = replacementEnded(d, pool, overdue)
	} else {
		ended, failed, why = changeEnded(d, pool, overdue)
	}
	if failed {
		why = fmt.Sprintf("%s %s have passed since %s, so it is no longer counted.",
			why, policy.ShortDuration(settings.FailureDeadline), formatTime(d.Since.Time))
	}
	return ended, failed, why
}

// abandonTimeout is the time after which a change of another operator counts as abandoned if its node is in service.
// An operator that works on a node cordons the node within seconds.
const abandonTimeout = time.Minute

// IsLingering reports whether the node of an entry without a Machine is in service, as if the change were not in
// progress.
func IsLingering(d v1alpha1.Disruption, pool NodePool) bool {
	n, found := findFirst(pool.Nodes, func(n Node) bool { return n.Instance == d.Instance })
	return found && d.Machine == "" && n.Ready && !n.Cordoned
}

// IsAbandoned reports whether the operator has stopped without ending the entry of a change, given the time since which
// the change lingers.
func IsAbandoned(lingering, now time.Time) bool { return now.Sub(lingering) >= abandonTimeout }

// changeEnded handles changes without replacement of the Machine. Normally the operator that makes a change ends the
// entry; changeEnded covers the remaining cases.
func changeEnded(d v1alpha1.Disruption, pool NodePool, overdue bool) (ended, failed bool, why string) {
	n, found := findFirst(pool.Nodes, func(n Node) bool { return n.Instance == d.Instance })
	switch {
	case !found:
		return true, false, fmt.Sprintf("WindowsInstance %s no longer exists.", d.Instance)
	case n.UID != d.InstanceUID:
		return true, false, fmt.Sprintf("WindowsInstance %s was recreated.", d.Instance)
	case n.Gone:
		return true, false, fmt.Sprintf("The host of WindowsInstance %s no longer exists.", d.Instance)
	case !overdue:
		return false, false, ""
	case n.Ready && (d.Cause != v1alpha1.CauseUpgrade || n.Version == d.Version):
		return true, true, fmt.Sprintf("%s is Ready, but its change was not completed.", n.describeWithPool())
	case n.Ready:
		return true, true, fmt.Sprintf("%s is Ready, but not at version %s.", n.describeWithPool(), d.Version)
	case n.Failure != nil && n.Failure.Version == d.Version && !n.Failure.Time.Before(&d.Since):
		return true, true, fmt.Sprintf("%s has failed: %s", n.describeWithPool(), failureText(*n.Failure))
	}
	return false, true, fmt.Sprintf("%s is not Ready.", n.describeWithPool())
}

// replacementEnded handles deleted Machines: their MachineSet must have all desired Machines in service.
func replacementEnded(d v1alpha1.Disruption, pool NodePool, overdue bool) (ended, failed bool, why string) {
	set, found := findFirst(pool.MachineSets, func(m MachineSet) bool {
		return MachineSetPool(m.Name) == d.Pool
	})
	switch {
	case !found:
		return true, false, fmt.Sprintf("%s no longer exists.", d.Pool)
	case slices.Contains(set.Staying, d.Machine) && overdue:
		return true, true, fmt.Sprintf("Machine %s was not deleted.", d.Machine)
	case slices.Contains(set.Staying, d.Machine):
		return false, false, ""
	case set.Missing == 0 && set.Running+countOtherUnavailable(d, pool) >= set.Replicas:
		return true, false, fmt.Sprintf("All desired Machines of %s are in service.", d.Pool)
	case set.Missing == 0 && set.Running+set.Failed >= set.Replicas && hasReadyReplacements(d, set, pool):
		return true, false, fmt.Sprintf("A replacement Machine of %s is in service, and other Machines of it have failed.", d.Pool)
	case !overdue:
		return false, false, ""
	}
	why = fmt.Sprintf("Of the %d Machines of %s, %d run with a node that is Ready.", set.Replicas, d.Pool, set.Running)
	return false, true, why + describePendingDeletion(set.Leaving, d.Machine)
}

// describePendingDeletion describes why a deleted Machine still exists. It returns "" if the Machine does not exist.
func describePendingDeletion(leaving []LeavingMachine, name string) string {
	machine, found := findFirst(leaving, func(m LeavingMachine) bool { return m.Name == name })
	switch {
	case !found:
		return ""
	case machine.Why == "":
		return fmt.Sprintf(" Machine %s is still being deleted.", name)
	}
	return fmt.Sprintf(" Machine %s is still being deleted: %s.", name, strings.TrimRight(machine.Why, ". "))
}

// countOtherUnavailable returns the number of nodes of the pool with failures unrelated to the replacement: the host no
// longer exists, or the node was not Ready before the replacement began.
func countOtherUnavailable(d v1alpha1.Disruption, pool NodePool) int {
	count := 0
	for _, n := range pool.Nodes {
		if n.Pool == d.Pool && n.Instance != d.Instance && (n.Gone || !n.Ready && n.Since.Before(d.Since.Time)) {
			count++
		}
	}
	return count
}

// hasReadyReplacements reports whether the number of nodes that became Ready with the version since the disruption
// began covers the Machines of the set that are being replaced. If so, failed Machines of the set are unrelated: they
// may have failed long ago, without ever having had a node.
func hasReadyReplacements(d v1alpha1.Disruption, set MachineSet, pool NodePool) bool {
	awaited, came := 0, 0
	for _, other := range pool.Disruptions {
		if other.Machine != "" && other.Pool == d.Pool && !slices.Contains(set.Staying, other.Machine) {
			awaited++
		}
	}
	for _, n := range pool.Nodes {
		if n.Pool == d.Pool && n.Ready && !n.Gone && n.Version == d.Version && !n.Since.Before(d.Since.Time) {
			came++
		}
	}
	return came >= awaited
}
