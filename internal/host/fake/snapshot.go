package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Snapshot is the complete state of the host from a user's view, for a deep comparison. Boot ID, times, process IDs,
// exit codes, identifiers of adapters and the journal are excluded, because they legitimately differ.
type Snapshot struct {
	HostName        string
	PendingHostName string
	Files           map[string]FileSnapshot // files, directories and links by path
	Services        map[string]ServiceSnapshot
	Features        map[string]host.FeatureState
	Environment     map[string]string
	Firewall        map[string]host.FirewallRule
	OutboundRules   []string           // names of outbound rules of the firewall, sorted
	Registry        map[string]uint32  // numbers by lower-case key and name
	Networks        []host.HNSNetwork  // sorted by name
	Endpoints       []host.HNSEndpoint // sorted by name
	Roots           []string           // fingerprints of the trusted roots, sorted
	Routes          []string           // destinations of routes added to the adapter of the default route, sorted
	EventSources    []string           // sorted
	Exclusions      []host.Exclusion   // of Microsoft Defender Antivirus, sorted by value
	Processes       []string           // paths, sorted
}

// FileSnapshot is a file, directory or link.
type FileSnapshot struct {
	Directory  bool
	SHA256     string // of files, in hex
	Size       int64
	LinkTarget string
	Access     host.Access
}

// ServiceSnapshot is a service.
type ServiceSnapshot struct {
	Config host.ServiceConfig
	State  host.ServiceState
}

// Snapshot returns a snapshot of the machine.
func (m *Machine) Snapshot() Snapshot {
	m.lock()
	defer m.unlock()
	s := Snapshot{
		HostName: m.name, PendingHostName: m.pendingName,
		Files: map[string]FileSnapshot{}, Services: map[string]ServiceSnapshot{}, Features: map[string]host.FeatureState{},
		EventSources: m.eventSourceNames(), Environment: m.environment.valuesByName(), Firewall: map[string]host.FirewallRule{},
		Networks: append([]host.HNSNetwork(nil), m.networks...),
		Roots:    m.roots.listFingerprints(), Routes: m.routes.listDestinations(),
	}
	s.Registry, s.Endpoints = withoutAdapters(m.registry, m.endpoints)
	m.drive.snapshotDirectory(`C:\`, s.Files)
	for _, each := range m.services {
		s.Services[each.config.Name] = ServiceSnapshot{cloneConfig(each.config), each.state}
	}
	for _, f := range m.features {
		s.Features[f.name] = f.state
	}
	s.OutboundRules = slices.Sorted(maps.Values(m.outboundRules))
	for _, rule := range m.firewall {
		s.Firewall[rule.Name] = rule
	}
	s.Exclusions = append([]host.Exclusion(nil), m.defender.exclusions...)
	slices.SortFunc(s.Exclusions, func(a, b host.Exclusion) int { return compareNames(a.Value, b.Value) })
	slices.SortFunc(s.Networks, func(a, b host.HNSNetwork) int { return compareNames(a.Name, b.Name) })
	slices.SortFunc(s.Endpoints, func(a, b host.HNSEndpoint) int { return compareNames(a.Name, b.Name) })
	for _, p := range m.processList() {
		s.Processes = append(s.Processes, p.Path)
	}
	slices.Sort(s.Processes)
	return s
}

// snapshotDirectory adds all entries below a directory.
func (d *drive) snapshotDirectory(folder string, into map[string]FileSnapshot) {
	infos, err := d.readDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return // a mounted directory that was removed in the meantime
	}
	for _, info := range infos {
		file := FileSnapshot{Directory: info.Directory, Size: info.Size, LinkTarget: info.LinkTarget, Access: info.Access}
		if !info.Directory && info.LinkTarget == "" {
			file.SHA256 = d.contentDigest(info.Path)
		}
		into[info.Path] = file
		if info.Directory {
			d.snapshotDirectory(info.Path, into)
		}
	}
}

func (d *drive) contentDigest(path string) string {
	at, err := d.resolveExisting(path, false)
	if err != nil {
		return ""
	}
	if at.node != nil && at.node.content != nil {
		return hex.EncodeToString(at.node.content.sum[:])
	}
	reader, err := d.openFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(reader.readRest())
	return hex.EncodeToString(sum[:])
}

// FilePaths returns the paths of all files, directories and links, sorted.
func (s Snapshot) FilePaths() []string { return slices.Sorted(maps.Keys(s.Files)) }
