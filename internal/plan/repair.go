package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Repair returns the part of a plan that does not require the operator. Steps that need missing files, or releases
// (given by directory) that could not be installed, are omitted. While the host waits for a restart, almost all
// steps are omitted. Running services continue until the files arrive, and stopped services start with their
// current command line. left describes the remaining work for the operator; empty for none.
func Repair(facts Facts, spec nodespec.NodeSpec, failed ...string) (p Plan, left string) {
	if facts.Ledger.StaticAddress == nil {
		facts.System.StaticAddress = false // a value that is not in the ledger could not be restored
	}
	m := newPlanner(facts, spec)
	left = joinNonEmpty(m.describeAddressChange(), m.holdBack(failed))
	if m.reboot != "" {
		m.repairBeforeRestart()
		return m.buildPlan(), "a restart of the host, because " + m.reboot
	}
	m.addAllSteps()
	return m.buildPlan(), left
}

// describeAddressChange describes a host that no longer has the node's address, such as after a new lease. A host
// without any address is without a network only temporarily, such as during the creation of a virtual switch.
func (m *planner) describeAddressChange() string {
	addresses := m.facts.System.Addresses
	if m.spec.NodeIP == "" || len(addresses) == 0 || slices.Contains(addresses, m.spec.NodeIP) {
		return ""
	}
	return "another address for the node, because the host no longer has " + m.spec.NodeIP + " but " +
		strings.Join(addresses, ", ")
}

// joinNonEmpty joins the non-empty texts.
func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// holdBack omits the releases that cannot be installed, with their links, files and services.
func (m *planner) holdBack(failed []string) (left string) {
	var lacks []string
	for _, release := range m.releases {
		name := m.missingFile(release)
		if name != "" {
			lacks = append(lacks, name+" of "+release.Component+", which is not on the host")
		}
		if name != "" || slices.Contains(failed, release.Directory) {
			m.unavailableReleases = append(m.unavailableReleases, release)
		}
	}
	if len(m.unavailableReleases) == 0 {
		return ""
	}
	m.releases = slices.DeleteFunc(m.releases, func(release nodespec.Release) bool {
		return slices.ContainsFunc(m.unavailableReleases, func(lacking nodespec.Release) bool {
			return lacking.Directory == release.Directory
		})
	})
	m.links = slices.DeleteFunc(slices.Clone(m.links), func(link nodespec.Link) bool { return m.isOfUnavailableRelease(link.Target) })
	m.holdServices()
	m.files = slices.DeleteFunc(m.files, m.isFileHeld)
	m.stops = m.servicesToStop()
	return strings.Join(lacks, "; ")
}

// missingFile returns the first file of a release that is missing on the host.
func (m *planner) missingFile(release nodespec.Release) string {
	for _, file := range release.Files {
		if _, there := m.facts.Payload[file.SHA256]; !there {
			return file.Name
		}
	}
	return ""
}

// isOfUnavailableRelease reports whether a command line or a path contains the directory of an unavailable
// release.
func (m *planner) isOfUnavailableRelease(commandLine string) bool {
	return slices.ContainsFunc(m.unavailableReleases, func(release nodespec.Release) bool {
		return HasProgramIn(commandLine, release.Directory)
	})
}

// holdServices marks the services that are not changed. These are services that run or should run from an unavailable
// release, and dependencies of running services that could not start again after a stop.
func (m *planner) holdServices() {
	m.held = map[string]bool{}
	pinned := map[string]bool{}
	for _, service := range slices.Backward(m.orderedServices()) {
		name := strings.ToLower(service.Name)
		fact, runs := m.runningService(service.Name)
		m.held[name] = pinned[name] || m.isOfUnavailableRelease(service.CommandLine) || m.isOfUnavailableRelease(fact.CommandLine) ||
			m.isOfUnavailableRelease(fact.RunningCommandLine)
		if !runs || !pinned[name] && m.canStart(fact) {
			continue
		}
		for _, dependency := range service.Dependencies {
			pinned[strings.ToLower(dependency)] = true
		}
	}
}

// isFileHeld reports whether a file is not changed because a held service uses it. A running service would never
// notice the change, and a service of another version may not support the change. A file with the
// address of kube-proxy's endpoint (NeedSourceVIP) is changed even for a stopped service of another version, because
// the file must match the endpoint.
func (m *planner) isFileHeld(file nodespec.File) bool {
	if _, there := m.facts.Files[file.Path]; !there {
		return false
	}
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		if !m.held[strings.ToLower(service.Name)] || !needsRestartFor(service, file) {
			return false
		}
		fact, there := m.facts.findService(service.Name)
		_, runs := m.runningService(service.Name)
		return runs || there && fact.CommandLine != service.CommandLine &&
			!slices.Contains(file.Needs, nodespec.NeedSourceVIP)
	})
}

// canStart reports whether no file is missing for a service to start with its current command line.
func (m *planner) canStart(fact host.Service) bool {
	for _, release := range m.unavailableReleases {
		for _, file := range release.Files {
			path := release.Path(file)
			if m.facts.Files[path].SHA256 != file.SHA256 && strings.Contains(strings.ToLower(fact.CommandLine),
				strings.ToLower(path)) {
				return false
			}
		}
	}
	return fact.CommandLine != ""
}

// isStartBlocked reports whether a service remains stopped until missing files arrive.
func (m *planner) isStartBlocked(service nodespec.Service) bool {
	fact, runs := m.runningService(service.Name)
	return m.held[strings.ToLower(service.Name)] && !runs && !m.canStart(fact)
}

// repairBeforeRestart repairs a host that waits for a restart, which the operator decides. A host that was already
// a node starts all its services even after a boot for another reason. No pod starts before the network exists.
func (m *planner) repairBeforeRestart() {
	m.stops = nil
	m.files = slices.DeleteFunc(m.files, func(file nodespec.File) bool {
		ofNetwork := needsNetwork(file) || slices.Contains(file.Needs, nodespec.NeedSourceVIP)
		return !ofNetwork || slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
			_, runs := m.runningService(service.Name)
			return runs && needsRestartFor(service, file)
		})
	})
	m.removeNetworkFiles()
	m.writeFiles()
	m.wakeNetworking()
	m.startConfigured()
	m.setUpNetwork()
}

func needsRestartFor(service nodespec.Service, file nodespec.File) bool {
	return slices.ContainsFunc(service.RestartOn, func(path string) bool { return nodespec.IsSamePath(path, file.Path) })
}

// startConfigured starts the correctly configured services that Windows does not start automatically.
func (m *planner) startConfigured() {
	away := m.waitingServices() // with dependents
	for _, service := range m.orderedServices() {
		name := strings.ToLower(service.Name)
		fact, there := m.facts.findService(service.Name)
		_, runs := m.runningService(service.Name)
		if runs {
			continue
		}
		away[name] = away[name] || configureReason(service.ServiceConfig, fact, there) != "" || !m.canStart(fact) ||
			m.hasDifferingFile(service) ||
			slices.ContainsFunc(service.Dependencies, func(dependency string) bool { return away[strings.ToLower(dependency)] })
		if !away[name] && service.StartType == host.StartManual {
			m.addOperation(StartService{Service: service.Name}, "service %s does not run", service.Name)
		}
	}
}

// hasDifferingFile reports whether a file that a service reads on start differs from the spec and is not written now.
func (m *planner) hasDifferingFile(service nodespec.Service) bool {
	return slices.ContainsFunc(m.spec.Files, func(file nodespec.File) bool {
		return needsRestartFor(service, file) && !m.isFileWritten(file.Path) && m.fileReason(file) != ""
	})
}
