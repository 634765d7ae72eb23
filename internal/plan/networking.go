package plan

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// wakeNetworking starts the Host Networking Service if the service is stopped and the pod network is missing. On
// Windows Server 2019 the service is stopped after each boot until the first call.
func (m *planner) wakeNetworking() {
	service, there := m.facts.HNS[nodespec.ServiceHNS]
	if m.spec.Network.HNSNetwork == "" || !there || service.State != host.ServiceStopped && !m.stopsHNS {
		return
	}
	if m.facts.HNSSilent != "" || m.networkReason() != "" {
		m.addOperation(StartService{Service: nodespec.ServiceHNS}, "the Host Networking Service, service %s, does not run",
			nodespec.ServiceHNS)
	}
}

// describeMissingNetworking returns a message about missing Windows services that pod networks need, and about the
// features that provide them; empty if none is missing.
func describeMissingNetworking(facts Facts, spec nodespec.NodeSpec) string {
	var missing []string
	for _, name := range []string{nodespec.ServiceHNS, nodespec.ServiceVFP} {
		if _, there := facts.HNS[name]; !there {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "Windows has no service " + strings.Join(missing, " and ") + ", although these features are enabled: " +
		strings.Join(enabledFeatures(facts, spec), ", ")
}

func enabledFeatures(facts Facts, spec nodespec.NodeSpec) []string {
	var list []string
	for _, features := range [][]string{spec.Features, spec.OptionalFeatures} {
		for _, name := range features {
			if facts.Features[name] == host.FeatureEnabled {
				list = append(list, name)
			}
		}
	}
	return list
}
