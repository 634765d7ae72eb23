package plan

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// wakeNetworking starts the Host Networking Service where it stands still and the pods' network is not there. On
// Windows Server 2019 it stands still after each boot, until somebody calls it.
func (m *maker) wakeNetworking() {
	service, there := m.facts.HNS[nodespec.ServiceHNS]
	if m.spec.Network.HNSNetwork == "" || !there || service.State != host.ServiceStopped && !m.stopsHNS {
		return
	}
	if m.facts.HNSSilent != "" || m.networkReason() != "" {
		m.add(StartService{Service: nodespec.ServiceHNS}, "the Host Networking Service, service %s, does not run",
			nodespec.ServiceHNS)
	}
}

// lackingNetworking says which of the Windows services are missing that pods' networks need, and which features bring
// them; empty when none is.
func lackingNetworking(facts Facts, spec nodespec.NodeSpec) string {
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
		strings.Join(enabled(facts, spec), ", ")
}

func enabled(facts Facts, spec nodespec.NodeSpec) []string {
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
