package fakemachineapi

import (
	"cmp"
	"slices"

	machinev1 "github.com/openshift/api/machine/v1beta1"
)

// Ranks of Machines for a scale-down: the lowest is deleted first.
const (
	rankAnnotated = iota
	rankUnhealthy
	rankWithoutNode
	rankOther
)

// deletionOrder returns the order in which a set's Machines are deleted at a scale-down: annotated Machines
// first, then Machines with an error, then by policy. The policy Random deletes Machines without a Node first,
// because no pod runs there, and then in the order of the random names. The Machine API ranks an annotation and
// an error alike; here the annotation takes precedence. R-043
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
		return cmp.Or(cmp.Compare(deletionRank(a, random), deletionRank(b, random)), age, cmp.Compare(a.Name, b.Name))
	})
}

func deletionRank(m *machinev1.Machine, random bool) int {
	switch {
	case m.Annotations[annotationDelete] != "" || m.Annotations[annotationDeleteOld] != "":
		return rankAnnotated
	case hasFailed(m):
		return rankUnhealthy
	case random && m.Status.NodeRef == nil:
		return rankWithoutNode
	default:
		return rankOther
	}
}
