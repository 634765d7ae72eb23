package byoh

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
)

// Patience is how long changes of the list must last before hosts are given back because of them.
type Patience struct {
	// Absence is how long the ConfigMap must be absent to count as such.
	Absence time.Duration
	// Removal is how long most hosts must be missing in the list.
	Removal time.Duration
}

// OrDefault returns the patience with the defaults in place of what is zero.
func (p Patience) OrDefault() Patience {
	return Patience{Absence: cmp.Or(p.Absence, DefaultAbsence), Removal: cmp.Or(p.Removal, DefaultRemoval)}
}

// The patience of an operator.
const (
	DefaultAbsence = 20 * time.Second
	DefaultRemoval = time.Minute
)

// held are removals that wait, because they are more than half of the hosts: a slip in the list is likelier than a
// wish. It is kept in memory: after a restart of the operator they wait for the whole time again.
type held struct {
	// names are the names of the instances.
	names map[string]bool
	// since is when the last of them was first seen to be missing in the list.
	since time.Time
	// of is how many hosts there were.
	of int
}

// withholds returns what is held after the list was read: the removals among the changes, if they must wait.
func (h held) withholds(changes []source.Change, present []v1alpha1.WindowsInstance, now time.Time) held {
	names := map[string]bool{}
	for _, change := range changes {
		if removes(change) {
			names[change.After.Name] = true
		}
	}
	hosts := 0
	for _, instance := range listed(present) {
		if mayBeNode(instance) {
			hosts++
		}
	}
	if len(names) < 2 || 2*len(names) <= hosts {
		return held{}
	}
	after := held{names: names, since: h.since, of: hosts}
	for name := range names {
		if !h.names[name] {
			after.since = now
		}
	}
	return after
}

// left returns the time until the removals may be done; not above zero when there are none, or they may.
func (h held) left(now time.Time, patience time.Duration) time.Duration {
	if len(h.names) == 0 {
		return 0
	}
	return patience - now.Sub(h.since)
}

// equal reports whether the same removals wait since the same time.
func (h held) equal(other held) bool {
	return h.since.Equal(other.since) && maps.Equal(h.names, other.names)
}

// passes returns the changes without the removals that are held.
func (h held) passes(changes []source.Change) []source.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(change source.Change) bool {
		return removes(change) && h.names[change.After.Name]
	})
}

// removes reports whether a change gives a host back on which something may be changed. One that was never reached is
// only forgotten.
func removes(change source.Change) bool {
	return change.Enters(v1alpha1.DesiredStateRemoved) && mayBeNode(change.Before)
}

// mayBeNode reports whether the operator has worked on the host, and it is not being given back.
func mayBeNode(instance *v1alpha1.WindowsInstance) bool {
	return instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved &&
		(instance.Status.HostKey != nil || instance.Status.NodeRef != nil)
}

// isListed reports whether an instance comes from the ConfigMap. The label says so too, but anybody who may label
// instances could take it away.
func isListed(instance *v1alpha1.WindowsInstance) bool {
	return instance.Spec.Source.ConfigMapKey != ""
}

// listed returns the instances that come from the ConfigMap.
func listed(instances []v1alpha1.WindowsInstance) []*v1alpha1.WindowsInstance {
	var result []*v1alpha1.WindowsInstance
	for i := range instances {
		if isListed(&instances[i]) {
			result = append(result, &instances[i])
		}
	}
	return result
}
