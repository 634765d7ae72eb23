package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// EventSource is the source name of the agent's service in the Windows event log.
const EventSource = nodespec.ServiceAgent

// The event source must exist before the agent's service and is deleted during a removal. Because every cluster
// uses the same source, it is not part of the spec.

func hasAgent(spec nodespec.NodeSpec) bool {
	return slices.ContainsFunc(spec.Services, func(service nodespec.Service) bool {
		return strings.EqualFold(service.Name, nodespec.ServiceAgent)
	})
}

func (m *planner) addEventSource() {
	if hasAgent(m.spec) && !m.facts.EventSource {
		m.addOperation(AddEventSource{Source: EventSource}, "the event source %s is not registered", EventSource)
	}
}

func (r *restorePlanner) restoreEventSource() {
	if before := r.facts.Ledger.EventSource; before != nil && !*before && r.facts.EventSource {
		r.addStep(RemoveEventSource{Source: EventSource}, false)
	}
}

// recordEventSource records whether the event source was registered before the first change of the host.
func recordEventSource(facts Facts, spec nodespec.NodeSpec) *bool {
	if facts.Ledger.EventSource != nil || !hasAgent(spec) {
		return facts.Ledger.EventSource
	}
	return &facts.EventSource
}
