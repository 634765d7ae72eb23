package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// orderedServices returns the spec's services, each after its dependencies.
func (m *planner) orderedServices() []nodespec.Service {
	byName := map[string]nodespec.Service{}
	names := make([]string, len(m.spec.Services))
	for i, service := range m.spec.Services {
		names[i] = service.Name
		byName[service.Name] = service
	}
	var services []nodespec.Service
	for _, name := range inOrder(names, func(name string) []string { return byName[name].Dependencies }) {
		services = append(services, byName[name])
	}
	return services
}

func (m *planner) runningService(name string) (host.Service, bool) {
	fact, there := m.facts.findService(name)
	return fact, there && fact.State != host.ServiceStopped
}

// servicesToStop returns the running services that must stop for a change, and their dependents, with the reasons.
func (m *planner) servicesToStop() map[string]string {
	stops := map[string]string{}
	waiting := m.waitingServices()
	for _, service := range m.orderedServices() {
		name := strings.ToLower(service.Name)
		if fact, runs := m.runningService(service.Name); runs && !waiting[name] && !m.held[name] {
			if reason := m.restartReason(service, fact); reason != "" {
				stops[name] = reason
			}
		}
	}
	for _, release := range m.releases {
		for _, service := range m.spec.Services {
			held := m.held[strings.ToLower(service.Name)]
			if fact, runs := m.runningService(service.Name); runs && !held && isRunFrom(fact, release.Directory) {
				stops[strings.ToLower(service.Name)] = m.releaseReason(release)
			}
		}
	}
	m.addReplaced(stops)
	m.addDependents(stops)
	return stops
}

// addDependents adds the running dependents of stopping services, because Windows stops them too.
func (m *planner) addDependents(stops map[string]string) {
	for added := true; added; {
		added = false
		for _, name := range slices.Sorted(maps.Keys(m.facts.Services)) {
			fact, runs := m.runningService(name)
			if _, known := stops[strings.ToLower(name)]; known || !runs {
				continue
			}
			for _, dependency := range fact.Dependencies {
				if _, stopping := stops[strings.ToLower(dependency)]; stopping {
					stops[strings.ToLower(name)] = "service " + dependency + ", which it depends on, is restarted"
					added = true
					break
				}
			}
		}
	}
}

// restartReason returns the reason why a running service must be restarted; empty for none.
func (m *planner) restartReason(service nodespec.Service, fact host.Service) string {
	switch {
	case fact.CommandLine != service.CommandLine:
		return "the command line of service " + service.Name + " differs"
	case fact.RunningCommandLine != "" && !nodespec.IsRunningAs(fact.RunningCommandLine, service.CommandLine):
		return "service " + service.Name + " still runs with its previous command line"
	case !isSameSet(fact.Environment, service.Environment, false):
		return "the environment of service " + service.Name + " differs"
	case m.certificates[""].installable && slices.Contains(service.Needs, nodespec.NeedCertificate):
		return "service " + service.Name + " gets a new certificate"
	}
	for _, path := range service.RestartOn {
		if m.isFileWritten(path) {
			return "file " + path + " of service " + service.Name + " changes"
		}
	}
	return ""
}

// stopServices stops all services that must be stopped for a change, before any other change. If the agent is
// killed in between, the next plan finds a stopped service and starts it. Dependents stop first, each in a separate
// step, so that the plan shows the effect of each stop on pods. The second call does nothing.
func (m *planner) stopServices() {
	if m.stopped {
		return
	}
	m.stopped = true
	for _, service := range slices.Backward(m.orderedServices()) {
		reason, wanted := m.stops[strings.ToLower(service.Name)]
		if done := m.foreign && strings.EqualFold(service.Name, nodespec.ServiceAgent); wanted && !done {
			m.addStep(Step{Operation: StopService{Service: service.Name}, Reason: reason, DisruptsPods: service.DisruptsPods})
		}
	}
}

// waitingServices returns the services, in lower case, that cannot start yet because of an unmet need, missing files,
// or a waiting dependency.
func (m *planner) waitingServices() map[string]bool {
	waiting := map[string]bool{}
	for _, service := range m.orderedServices() {
		waits := m.hasUnmetNeed(service.Needs) || m.isStartBlocked(service) || slices.ContainsFunc(service.Dependencies,
			func(dependency string) bool {
				return waiting[strings.ToLower(dependency)]
			})
		waiting[strings.ToLower(service.Name)] = waits
	}
	return waiting
}

func (m *planner) startServices() {
	waiting := m.waitingServices()
	for _, service := range m.orderedServices() {
		if waiting[strings.ToLower(service.Name)] {
			continue
		}
		fact, there := m.facts.findService(service.Name)
		held := m.held[strings.ToLower(service.Name)] // exists, because a missing service would be waiting
		if reason := configureReason(service.ServiceConfig, fact, there); reason != "" && !held {
			m.addOperation(ConfigureService{Service: service.ServiceConfig}, "%s", reason)
		}
		reason, stopped := m.stops[strings.ToLower(service.Name)]
		switch {
		case !there:
			m.addOperation(StartService{Service: service.Name}, "service %s is new", service.Name)
		case stopped:
			m.addOperation(StartService{Service: service.Name}, "%s", reason)
		case fact.State != host.ServiceRunning:
			m.addOperation(StartService{Service: service.Name}, "service %s does not run", service.Name)
		}
	}
}

// configureReason returns the first difference between a service and its configuration; empty for none.
func configureReason(wanted host.ServiceConfig, fact host.Service, there bool) string {
	differs := func(what string) string { return "the " + what + " of service " + wanted.Name + " differs" }
	switch {
	case !there:
		return "service " + wanted.Name + " does not exist"
	case fact.CommandLine != wanted.CommandLine:
		return differs("command line")
	case !isSameSet(fact.Dependencies, wanted.Dependencies, true):
		return differs("list of dependencies")
	case !isSameSet(fact.Environment, wanted.Environment, false):
		return differs("environment")
	case fact.Description != wanted.Description:
		return differs("description")
	case cmp.Or(fact.DisplayName, fact.Name) != cmp.Or(wanted.DisplayName, wanted.Name): // Windows reports the name if no display name is set
		return differs("display name")
	case fact.StartType != wanted.StartType:
		return differs("start type")
	case fact.DelayedStart != wanted.DelayedStart && wanted.StartType == host.StartAutomatic:
		return differs("delay of the start")
	case !isSameRecovery(fact.ServiceConfig, wanted):
		return differs("recovery after a crash")
	}
	return ""
}

// isSameRecovery compares the complete recovery settings. Windows keeps no reset period without actions.
func isSameRecovery(a, b host.ServiceConfig) bool {
	ofA, ofB := a.FullRecovery(), b.FullRecovery()
	return ofA.Equal(ofB) && (len(ofA.Actions) == 0 || a.ResetPeriod == b.ResetPeriod)
}

// isSameSet compares two lists, ignoring the order.
func isSameSet(a, b []string, foldCase bool) bool {
	normal := func(list []string) []string {
		list = slices.Clone(list)
		if foldCase {
			for i := range list {
				list[i] = strings.ToLower(list[i])
			}
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(normal(a), normal(b))
}
