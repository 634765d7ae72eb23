package machineapi

import (
	"cmp"
	"slices"

	machinev1 "github.com/openshift/api/machine/v1beta1"
)

// Ranks of Machines when some have to go: the lowest first.
const (
	rankAnnotated = iota
	rankUnhealthy
	rankWithoutNode
	rankOther
)

// deletionOrder returns the order in which a set's Machines go when it is scaled down: those that are annotated, then
// those that have an error, then those that the policy names. The policy Random takes Machines without a Node before
// others, since nothing runs on them, and leaves the rest to chance, which is in their names. The Machine API ranks an
// annotation and an error alike; here the annotation comes first. R-043
func deletionOrder(machines []*machinev1.Machine, policy machinev1.MachineSetDeletePolicy) []*machinev1.Machine {
	random := policy != machinev1.NewestMachineSetDeletePolicy && policy != machinev1.OldestMachineSetDeletePolicy
	return slices.SortedFunc(slices.Values(machines), func(a, b *machinev1.Machine) int {
		age := 0
		switch policy {
		case machinev1.NewestMachineSetDeletePolicy:
			age = b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
		case machinev1.OldestMachineSetDeletePolicy:
			age = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return cmp.Or(cmp.Compare(rank(a, random), rank(b, random)), age, cmp.Compare(a.Name, b.Name))
	})
}

func rank(m *machinev1.Machine, random bool) int {
	switch {
	case m.Annotations[annotationDelete] != "" || m.Annotations[annotationDeleteOld] != "":
		return rankAnnotated
	case failed(m):
		return rankUnhealthy
	case random && m.Status.NodeRef == nil:
		return rankWithoutNode
	default:
		return rankOther
	}
}
