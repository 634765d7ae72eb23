package support

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// MachineSuffix is the number of characters that a MachineSet appends to its own name for the name of a Machine: a
// hyphen and five more.
const MachineSuffix = 6

type machineSubject struct {
	platform Platform
	cluster  nodespec.Cluster
	name     string
}

// Machine decides whether a Machine of this name can be a Windows node of the cluster. SupportCluster decides whether
// the cluster itself is supported.
func Machine(cluster nodespec.Cluster, machine string) policy.Decision {
	platform, _ := findPlatform(cluster.Platform)
	allowed := fmt.Sprintf("Windows Machines are supported on platform %s.", cluster.Platform)
	return policy.Decide(machineSubject{platform, cluster, machine}, allowed, []policy.Check[machineSubject]{
		{Name: "MachinesUnsupported", Reason: v1alpha1.ReasonPlatformUnsupported, Violation: machinesUnsupported},
		{Name: "MachineNameTooLong", Reason: v1alpha1.ReasonMachineNameTooLong, Violation: machineNameTooLong},
	})
}

func machinesUnsupported(s machineSubject) string {
	if s.platform.Machines {
		return ""
	}
	return fmt.Sprintf("Windows Machines are not supported on platform %s. List the host in the ConfigMap windows-instances instead.", s.cluster.Platform)
}

// machineNameTooLong refuses a name that Windows would truncate: a computer name has at most 15 characters.
func machineNameTooLong(s machineSubject) string {
	limit := s.platform.MaxMachineNameLength
	if limit == 0 || len(s.name) <= limit {
		return ""
	}
	return fmt.Sprintf("The name of Machine %s has %d characters; on platform %s a Windows Machine may have %d at most. "+
		"Replace it with a Machine of a MachineSet whose name has at most %d characters: the names of its Machines are %d characters longer.",
		s.name, len(s.name), s.cluster.Platform, limit, limit-MachineSuffix, MachineSuffix)
}
