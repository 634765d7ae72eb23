package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// EventSource is the name under which the agent's service writes to Windows' event log.
const EventSource = nodespec.ServiceAgent

// The event source comes with the agent's service, before which it must be there, and goes with the removal. It is no
// part of the spec: no cluster wants another.

func hasAgent(spec nodespec.NodeSpec) bool {
	return slices.ContainsFunc(spec.Services, func(service nodespec.Service) bool {
		return strings.EqualFold(service.Name, nodespec.ServiceAgent)
	})
}

func (m *maker) addEventSource() {
	if hasAgent(m.spec) && !m.facts.EventSource {
		m.add(AddEventSource{Source: EventSource}, "the event source %s is not registered", EventSource)
	}
}

func (r *restorer) eventSource() {
	if before := r.facts.Ledger.EventSource; before != nil && !*before && r.facts.EventSource {
		r.add(RemoveEventSource{Source: EventSource}, false)
	}
}

// recordEventSource notes whether the source was known before us.
func recordEventSource(facts Facts, spec nodespec.NodeSpec) *bool {
	if facts.Ledger.EventSource != nil || !hasAgent(spec) {
		return facts.Ledger.EventSource
	}
	return &facts.EventSource
}
