package replacement

import (
	"cmp"
	"fmt"
	"slices"
)

// Checks that keep a Machine because its successor would be refused as a new host.
const (
	ClusterUnsupported = "ClusterUnsupported"
	MachineUnsupported = "MachineUnsupported"
	ImageUnsupported   = "ImageUnsupported"
)

// NeedsAdministrator reports whether the Machine waits until an administrator changes the cluster or the MachineSet.
func (w Waiting) NeedsAdministrator() bool {
	return slices.Contains([]string{ClusterUnsupported, MachineUnsupported, ImageUnsupported}, w.Check)
}

// clusterRefused detects a cluster that accepts no new hosts as nodes.
func clusterRefused(s subject) string {
	if s.fleet.ClusterRefusal == "" {
		return ""
	}
	return s.fleet.ClusterRefusal + " A new Machine would not become a node, so this Machine is not replaced."
}

// nameRefused detects a MachineSet with Machine names that nodes cannot have.
func nameRefused(s subject) string {
	if s.machine.NameRefusal == "" {
		return ""
	}
	return s.machine.NameRefusal + " A new Machine would not become a node either, so this Machine is not replaced."
}

// imageRefused detects a MachineSet with a refused Windows build in its image. Only the youngest host with that image
// shows the build: older hosts may have been updated since, and a name such as "latest" resolves to other builds over
// time. Without such a host the build is unknown, and the Machine is replaced.
func imageRefused(s subject) string {
	set := s.sets[s.machine.Set]
	var youngest *Machine
	for i := range s.fleet.Machines {
		m := &s.fleet.Machines[i]
		if m.Set != set.Name || m.Image != set.Image || m.Build == "" {
			continue
		}
		if youngest == nil || cmp.Or(m.Created.Compare(youngest.Created), cmp.Compare(m.Name, youngest.Name)) > 0 {
			youngest = m
		}
	}
	if youngest == nil || youngest.BuildRefusal == "" {
		return ""
	}
	return fmt.Sprintf("The image of MachineSet %s has Windows build %s, as reported by Machine %s, and a new Machine would not become a node. %s "+
		"Give the MachineSet an image with a supported build; Machines are then replaced.", set.Name, youngest.Build, youngest.Name, youngest.BuildRefusal)
}
