package disruption

import (
	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// ChangedSettings describes, for administrators, the differences between two configurations: "the changed settings of
// kubelet".
func ChangedSettings(from, to string) string {
	services := nodespec.ChangedServices(from, to)
	if len(services) == 0 {
		return "the current settings of the cluster"
	}
	return "the changed settings of " + policy.Enumerate(services)
}

// isBehind reports whether the node's configuration differs from the desired one. If the desired configuration is not
// known, no node is behind.
func (n Node) isBehind(configuration string) bool {
	return configuration != "" && n.Configuration != configuration
}

// knownConfiguration returns the desired configuration of all nodes. An operator that has just started has not read
// the cluster settings; the configuration of a failed change then serves instead, because a failure is recorded only
// while its configuration is desired.
func knownConfiguration(pool NodePool, version, configuration string) string {
	for _, n := range pool.Nodes {
		if f := n.Failure; configuration == "" && f != nil && isSettingsCause(f.Cause) && f.Version == version {
			configuration = f.ConfigurationDigest
		}
	}
	return configuration
}

// causeOfChange returns the reason for changing the node, or "" if the node has the version and the configuration.
func (n Node) causeOfChange(version, configuration string) v1alpha1.DisruptionCause {
	switch {
	case n.Version != version:
		return v1alpha1.CauseUpgrade
	case n.isBehind(configuration):
		return v1alpha1.CauseConfiguration
	}
	return ""
}
