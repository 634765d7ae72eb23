package byoh

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
)

// RemovalDelays defines how long changes of the list must last before hosts are restored because of them.
type RemovalDelays struct {
	// Absence is how long the ConfigMap must be missing to count as absent.
	Absence time.Duration
	// Removal is how long most hosts must be missing from the list.
	Removal time.Duration
}

// WithDefaults returns the delays with defaults for zero values.
func (p RemovalDelays) WithDefaults() RemovalDelays {
	return RemovalDelays{Absence: cmp.Or(p.Absence, DefaultAbsence), Removal: cmp.Or(p.Removal, DefaultRemoval)}
}

// Default delays of an operator.
const (
	DefaultAbsence = 20 * time.Second
	DefaultRemoval = time.Minute
)

// heldRemovals contains removals that are delayed because they affect more than half of the hosts: an error in the
// list is more likely than intent. The data is kept in memory, so that a restart of the operator restarts the delay.
type heldRemovals struct {
	// names are the names of the instances.
	names map[string]bool
	// since is when the last of them was first found missing from the list.
	since time.Time
	// hostCount is the number of hosts before the removals.
	hostCount int
}

// findHeldRemovals returns the removals that must wait after a read of the list.
func (h heldRemovals) findHeldRemovals(changes []source.Change, present []v1alpha1.WindowsInstance, now time.Time) heldRemovals {
	names := map[string]bool{}
	for _, change := range changes {
		if isHostRemoval(change) {
			names[change.After.Name] = true
		}
	}
	hosts := 0
	for _, instance := range listedInstances(present) {
		if mayBeNode(instance) {
			hosts++
		}
	}
	if len(names) < 2 || 2*len(names) <= hosts {
		return heldRemovals{}
	}
	after := heldRemovals{names: names, since: h.since, hostCount: hosts}
	for name := range names {
		if !h.names[name] {
			after.since = now
		}
	}
	return after
}

// remainingDelay returns the remaining delay of the removals; zero or less if there is none.
func (h heldRemovals) remainingDelay(now time.Time, patience time.Duration) time.Duration {
	if len(h.names) == 0 {
		return 0
	}
	return patience - now.Sub(h.since)
}

// isEqual reports whether the same removals wait since the same time.
func (h heldRemovals) isEqual(other heldRemovals) bool {
	return h.since.Equal(other.since) && maps.Equal(h.names, other.names)
}

// releasedChanges returns the changes without the delayed removals.
func (h heldRemovals) releasedChanges(changes []source.Change) []source.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(change source.Change) bool {
		return isHostRemoval(change) && h.names[change.After.Name]
	})
}

// isHostRemoval reports whether a change removes a host that the operator may have changed. A host that was never
// reached needs no restore.
func isHostRemoval(change source.Change) bool {
	return change.ChangesStateTo(v1alpha1.DesiredStateRemoved) && mayBeNode(change.Before)
}

// mayBeNode reports whether the operator has worked on the host, and the host is not being restored.
func mayBeNode(instance *v1alpha1.WindowsInstance) bool {
	return instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved &&
		(instance.Status.HostKey != nil || instance.Status.NodeRef != nil)
}

// isListed reports whether an instance comes from the ConfigMap. The source label is not used, because any client
// that may label instances could remove it.
func isListed(instance *v1alpha1.WindowsInstance) bool {
	return instance.Spec.Source.ConfigMapKey != ""
}

// listedInstances returns the instances that come from the ConfigMap.
func listedInstances(instances []v1alpha1.WindowsInstance) []*v1alpha1.WindowsInstance {
	var result []*v1alpha1.WindowsInstance
	for i := range instances {
		if isListed(&instances[i]) {
			result = append(result, &instances[i])
		}
	}
	return result
}
