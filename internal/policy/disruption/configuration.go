package disruption

import (
	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// ChangedSettings says, for administrators, what differs between two configurations: "the changed settings of kubelet".
func ChangedSettings(from, to string) string {
	services := nodespec.ChangedServices(from, to)
	if len(services) == 0 {
		return "the current settings of the cluster"
	}
	return "the changed settings of " + policy.Enumerate(services)
}

// behind reports whether the node has another configuration than the one that all are to have. As long as that is not
// known, no node is behind.
func (n Node) behind(configuration string) bool {
	return configuration != "" && n.Configuration != configuration
}

// knownConfiguration returns the configuration that all nodes are to have. An operator that has just started has not read
// the cluster's settings; but what a node has failed with is kept only as long as it is wanted.
func knownConfiguration(pool NodePool, version, configuration string) string {
	for _, n := range pool.Nodes {
		if f := n.Failure; configuration == "" && f != nil && bringsSettings(f.Cause) && f.Version == version {
			configuration = f.ConfigurationDigest
		}
	}
	return configuration
}

// causeOfChange returns why the node is to be changed; empty when it has the version and the configuration.
func (n Node) causeOfChange(version, configuration string) v1alpha1.DisruptionCause {
	switch {
	case n.Version != version:
		return v1alpha1.CauseUpgrade
	case n.behind(configuration):
		return v1alpha1.CauseConfiguration
	}
	return ""
}
