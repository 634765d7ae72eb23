package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Ended returns the state of an entry of status.disruptions. An ended entry is removed from the list. A failed entry no
// longer counts, whether ended or not: a failed one that has not ended stays on the list, as the record of a change
// that did not come back (above all a canary's), until its node or MachineSet is whole again or gone, or it is
// requested again. why gives the reason; it is empty for an entry that continues.
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
			why, policy.ShortDuration(settings.FailureDeadline), moment(d.Since.Time))
	}
	return ended, failed, why
}

// abandonedAfter is how long a change of another operator is left alone whose node is in service. An operator that works
// on a node makes it unschedulable within seconds.
const abandonedAfter = time.Minute

// Lingers reports whether the node of a change in place is in service, as if nobody made the change.
func Lingers(d v1alpha1.Disruption, pool NodePool) bool {
	n, found := first(pool.Nodes, func(n Node) bool { return n.Instance == d.Instance })
	return found && d.Machine == "" && n.Ready && !n.Cordoned
}

// Abandoned reports whether the operator that has a change in place has ended without ending the change, which has
// lingered since then.
func Abandoned(lingering, now time.Time) bool { return now.Sub(lingering) >= abandonedAfter }

// changeEnded is for changes in place. Whoever makes one ends it; this is for when nobody does.
func changeEnded(d v1alpha1.Disruption, pool NodePool, overdue bool) (ended, failed bool, why string) {
	n, found := first(pool.Nodes, func(n Node) bool { return n.Instance == d.Instance })
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
		return true, true, fmt.Sprintf("%s is Ready, but its change was not completed.", n.describe())
	case n.Ready:
		return true, true, fmt.Sprintf("%s is Ready, but not at version %s.", n.describe(), d.Version)
	case n.Failure != nil && n.Failure.Version == d.Version && !n.Failure.Time.Before(&d.Since):
		return true, true, fmt.Sprintf("%s has failed: %s", n.describe(), failureText(*n.Failure))
	}
	return false, true, fmt.Sprintf("%s is not Ready.", n.describe())
}

// replacementEnded is for Machines that are deleted: their MachineSet must have as many as it is to have, all in
// service.
func replacementEnded(d v1alpha1.Disruption, pool NodePool, overdue bool) (ended, failed bool, why string) {
	set, found := first(pool.MachineSets, func(m MachineSet) bool {
		return MachineSetPool(m.Name) == d.Pool
	})
	switch {
	case !found:
		return true, false, fmt.Sprintf("%s no longer exists.", d.Pool)
	case slices.Contains(set.Staying, d.Machine) && overdue:
		return true, true, fmt.Sprintf("Machine %s was not deleted.", d.Machine)
	case slices.Contains(set.Staying, d.Machine):
		return false, false, ""
	case set.Missing == 0 && set.Running+brokenBesides(d, pool) >= set.Replicas:
		return true, false, fmt.Sprintf("All desired Machines of %s are in service.", d.Pool)
	case set.Missing == 0 && set.Running+set.Failed >= set.Replicas && successorsCame(d, set, pool):
		return true, false, fmt.Sprintf("A replacement Machine of %s is in service, and other Machines of it have failed.", d.Pool)
	case !overdue:
		return false, false, ""
	}
	why = fmt.Sprintf("Of the %d Machines of %s, %d run with a node that is Ready.", set.Replicas, d.Pool, set.Running)
	return false, true, why + stillThere(set.Leaving, d.Machine)
}

// stillThere says why a Machine that was deleted is still there, if it is.
func stillThere(leaving []LeavingMachine, name string) string {
	machine, found := first(leaving, func(m LeavingMachine) bool { return m.Name == name })
	switch {
	case !found:
		return ""
	case machine.Why == "":
		return fmt.Sprintf(" Machine %s is still being deleted.", name)
	}
	return fmt.Sprintf(" Machine %s is still being deleted: %s.", name, strings.TrimRight(machine.Why, ". "))
}

// brokenBesides is how many nodes of the pool do not work that it is not for the replacement to mend: those whose host
// is gone, and those that did not work before it began.
func brokenBesides(d v1alpha1.Disruption, pool NodePool) int {
	count := 0
	for _, n := range pool.Nodes {
		if n.Pool == d.Pool && n.Instance != d.Instance && (n.Gone || !n.Ready && n.Since.Before(d.Since.Time)) {
			count++
		}
	}
	return count
}

// successorsCame reports whether as many nodes have come into service with the version since the disruption began as
// Machines of the set are being replaced. Then Machines that have failed are others: they may have failed long ago,
// without ever having had a node.
func successorsCame(d v1alpha1.Disruption, set MachineSet, pool NodePool) bool {
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
