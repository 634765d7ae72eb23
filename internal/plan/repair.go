package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Repair returns the part of a plan that needs no operator: no step that needs missing files, or releases (their
// folders) that could not be installed, and almost none while the host waits for a restart. Running services continue
// until the files come, and stopped services start with their present command line. left names what only the operator
// can do; empty for nothing.
func Repair(facts Facts, spec nodespec.NodeSpec, failed ...string) (p Plan, left string) {
	if facts.Ledger.StaticAddress == nil {
		facts.System.StaticAddress = false // nobody could give back what the ledger does not know
	}
	m := newMaker(facts, spec)
	left = joined(m.moved(), m.holdBack(failed))
	if m.reboot != "" {
		m.repairBeforeRestart()
		return m.plan(), "a restart of the host, because " + m.reboot
	}
	m.makeAll()
	return m.plan(), left
}

// moved describes a host that no longer has the node's address, as after a new lease. A host without any address has no
// network at the moment, because a virtual switch is being made, say.
func (m *maker) moved() string {
	addresses := m.facts.System.Addresses
	if m.spec.NodeIP == "" || len(addresses) == 0 || slices.Contains(addresses, m.spec.NodeIP) {
		return ""
	}
	return "another address for the node, because the host no longer has " + m.spec.NodeIP + " but " +
		strings.Join(addresses, ", ")
}

// joined joins texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// holdBack leaves out the releases that cannot be installed, and what belongs to them.
func (m *maker) holdBack(failed []string) (left string) {
	var lacks []string
	for _, release := range m.releases {
		name := m.nowhere(release)
		if name != "" {
			lacks = append(lacks, name+" of "+release.Component+", which is not on the host")
		}
		if name != "" || slices.Contains(failed, release.Directory) {
			m.lacking = append(m.lacking, release)
		}
	}
	if len(m.lacking) == 0 {
		return ""
	}
	m.releases = slices.DeleteFunc(m.releases, func(release nodespec.Release) bool {
		return slices.ContainsFunc(m.lacking, func(lacking nodespec.Release) bool {
			return lacking.Directory == release.Directory
		})
	})
	m.links = slices.DeleteFunc(slices.Clone(m.links), func(link nodespec.Link) bool { return m.ofLacking(link.Target) })
	m.holdServices()
	m.files = slices.DeleteFunc(m.files, m.holdsFile)
	m.stops = m.servicesToStop()
	return strings.Join(lacks, "; ")
}

// nowhere returns a file of a release that is nowhere on the host.
func (m *maker) nowhere(release nodespec.Release) string {
	for _, file := range release.Files {
		if _, there := m.facts.Payload[file.SHA256]; !there {
			return file.Name
		}
	}
	return ""
}

// ofLacking reports whether a command line or a path names something in the folder of a release that lacks files.
func (m *maker) ofLacking(commandLine string) bool {
	return slices.ContainsFunc(m.lacking, func(release nodespec.Release) bool {
		return Mentions(commandLine, release.Directory)
	})
}

// holdServices marks the services that stay as they are: those that run or are to run from a release that lacks files,
// and those with which one would stop that could not start again.
func (m *maker) holdServices() {
	m.held = map[string]bool{}
	pinned := map[string]bool{}
	for _, service := range slices.Backward(m.ordered()) {
		name := strings.ToLower(service.Name)
		fact, runs := m.running(service.Name)
		m.held[name] = pinned[name] || m.ofLacking(service.CommandLine) || m.ofLacking(fact.CommandLine) ||
			m.ofLacking(fact.RunningCommandLine)
		if !runs || !pinned[name] && m.canStart(fact) {
			continue
		}
		for _, dependency := range service.Dependencies {
			pinned[strings.ToLower(dependency)] = true
		}
	}
}

// holdsFile reports whether a file stays as it is, because a service uses it that does: one that runs would not notice
// the change, nor anybody later, and one of another version may not understand it. What follows the network must follow
// it.
func (m *maker) holdsFile(file nodespec.File) bool {
	if _, there := m.facts.Files[file.Path]; !there {
		return false
	}
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		if !m.held[strings.ToLower(service.Name)] || !restartsOn(service, file) {
			return false
		}
		fact, there := m.facts.service(service.Name)
		_, runs := m.running(service.Name)
		return runs || there && fact.CommandLine != service.CommandLine &&
			!slices.Contains(file.Needs, nodespec.NeedSourceVIP)
	})
}

// canStart reports whether a service can start with the command line that it has, as far as a lack of files goes.
func (m *maker) canStart(fact host.Service) bool {
	for _, release := range m.lacking {
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

// cannotStart reports whether a service stands still until files come.
func (m *maker) cannotStart(service nodespec.Service) bool {
	fact, runs := m.running(service.Name)
	return m.held[strings.ToLower(service.Name)] && !runs && !m.canStart(fact)
}

// repairBeforeRestart is for a host that waits for a restart, which the operator decides: a node that was one comes up
// all the same after a boot for another reason. No pod starts before the network is there.
func (m *maker) repairBeforeRestart() {
	m.stops = nil
	m.files = slices.DeleteFunc(m.files, func(file nodespec.File) bool {
		ofNetwork := needsNetwork(file) || slices.Contains(file.Needs, nodespec.NeedSourceVIP)
		return !ofNetwork || slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
			_, runs := m.running(service.Name)
			return runs && restartsOn(service, file)
		})
	})
	m.takeAwayForNetwork()
	m.writeFiles()
	m.wakeNetworking()
	m.startConfigured()
	m.setUpNetwork()
}

func restartsOn(service nodespec.Service, file nodespec.File) bool {
	return slices.ContainsFunc(service.RestartOn, func(path string) bool { return nodespec.SamePath(path, file.Path) })
}

// startConfigured starts what Windows does not start by itself and what is configured as it should be.
func (m *maker) startConfigured() {
	away := m.waiting() // and what depends on it
	for _, service := range m.ordered() {
		name := strings.ToLower(service.Name)
		fact, there := m.facts.service(service.Name)
		_, runs := m.running(service.Name)
		if runs {
			continue
		}
		away[name] = away[name] || configureReason(service.ServiceConfig, fact, there) != "" || !m.canStart(fact) ||
			m.differs(service) ||
			slices.ContainsFunc(service.Dependencies, func(dependency string) bool { return away[strings.ToLower(dependency)] })
		if !away[name] && service.StartType == host.StartManual {
			m.add(StartService{Service: service.Name}, "service %s does not run", service.Name)
		}
	}
}

// differs reports whether a file that a service reads at its start is another than it should be, and is not written
// now.
func (m *maker) differs(service nodespec.Service) bool {
	return slices.ContainsFunc(m.spec.Files, func(file nodespec.File) bool {
		return restartsOn(service, file) && !m.changes(file.Path) && m.fileReason(file) != ""
	})
}
