package plan_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// model is a simulated host in the form of facts. Steps change the facts.
type model struct {
	plan.Facts
	disrupted  bool // the last step disrupted pods
	subnet     string
	overlay    string // the service that creates the network
	network    string
	blackout   bool            // a power failure kills the agent
	disruptive map[string]bool // services with disruptive restarts
	refuses    bool            // Defender refuses changes of exclusions
	before     func(plan.Step) // checks the host before each step; may be nil
	// reads are the files that a service reads on start, and loaded are their digests at that time, by service and
	// path.
	reads  map[string][]string
	loaded map[string]map[string]string
	// unread is the kubelet's certificate while unreadable. The certificate becomes readable again for the next
	// plan but one.
	unread *plan.CertificateFacts
}

// newModel returns an unconfigured host. The operator has created C:\k\wicd.
func newModel() *model {
	return &model{overlay: "overlay", network: "OVN", disruptive: map[string]bool{},
		reads: map[string][]string{}, loaded: map[string]map[string]string{}, Facts: plan.Facts{
			Time:     now,
			System:   host.SystemInfo{HostName: "WIN-OLD"},
			Payload:  map[string]string{},
			Features: map[string]host.FeatureState{"Containers": host.FeatureDisabled, "TelnetClient": host.FeatureDisabled},
			Files: map[string]plan.FileFact{
				nodespec.Root:      {Directory: true, Access: host.AccessInherited, Entries: []string{"wicd"}},
				nodespec.AgentRoot: {Directory: true, Access: host.AccessInherited},
			},
			Environment: map[string]string{},
			Firewall:    map[string]host.FirewallRule{},
			Services:    map[string]host.Service{},
			Antivirus:   plan.AntivirusFacts{Active: true},
		}}
}

func (m *model) copyModel() *model {
	c := *m
	c.Payload, c.Features, c.Files = maps.Clone(m.Payload), maps.Clone(m.Features), maps.Clone(m.Files)
	c.Environment, c.Firewall, c.Services = maps.Clone(m.Environment), maps.Clone(m.Firewall), maps.Clone(m.Services)
	c.Networks, c.Endpoints, c.Processes = slices.Clone(m.Networks), slices.Clone(m.Endpoints), slices.Clone(m.Processes)
	c.TrustedCertificates, c.Routes = slices.Clone(m.TrustedCertificates), slices.Clone(m.Routes)
	c.Antivirus.Exclusions = slices.Clone(m.Antivirus.Exclusions)
	c.reads, c.loaded = maps.Clone(m.reads), maps.Clone(m.loaded)
	return &c
}

// applyStep applies the effect of a step.
func (m *model) applyStep(step plan.Step) {
	m.applyOperation(step)
	for path, fact := range m.Files {
		fact.Listed = fact.Directory && strings.Contains(path, `\registries`)
		m.Files[path] = fact
		if fact.Entries != nil || fact.Listed {
			fact.Entries = m.listEntries(path)
			m.Files[path] = fact
		}
	}
}

// listEntries returns the names in a directory.
func (m *model) listEntries(dir string) []string {
	names := map[string]bool{}
	for path := range m.Files {
		if rest, below := strings.CutPrefix(path, dir+`\`); below {
			name, _, _ := strings.Cut(rest, `\`)
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (m *model) applyOperation(step plan.Step) {
	if m.before != nil {
		m.before(step)
	}
	m.disrupted = false
	switch o := step.Operation.(type) {
	case plan.EnableFeature:
		m.Features[o.Feature] = host.FeatureEnablePending
		if o.Feature == "TelnetClient" {
			m.Features[o.Feature] = host.FeatureEnabled
		}
	case plan.DisableFeature:
		m.Features[o.Feature] = host.FeatureDisablePending
		if o.Feature == "TelnetClient" {
			m.Features[o.Feature] = host.FeatureDisabled
		}
	case plan.SetHostName:
		m.System.PendingHostName = o.HostName
		if m.System.HostName == o.HostName {
			m.System.PendingHostName = ""
		}
	case plan.Reboot:
		m.rebootHost()
	case plan.SetEnvironment:
		m.Environment[o.Name] = o.Value
		if o.Unset {
			delete(m.Environment, o.Name)
		}
	case plan.SetFirewallRule:
		m.Firewall[o.Rule.Name] = o.Rule
	case plan.DeleteFirewallRule:
		delete(m.Firewall, o.Rule)
	case plan.AddEventSource:
		m.EventSource = true
	case plan.RemoveEventSource:
		m.EventSource = false
	case plan.TrustCertificate:
		m.TrustedCertificates = append(slices.Clone(m.TrustedCertificates), o.Certificate.Fingerprint)
		slices.Sort(m.TrustedCertificates)
	case plan.DistrustCertificate:
		m.TrustedCertificates = withoutEntry(m.TrustedCertificates, o.Fingerprint)
	case plan.SetRegistryNumber:
		m.DevicelessDisabled = &o.Value
	case plan.DeleteRegistryValue:
		m.DevicelessDisabled = nil
	case plan.AddRoute:
		m.Routes = append(m.Routes, o.Destination)
	case plan.DeleteRoute:
		m.Routes = withoutEntry(m.Routes, o.Destination)
	case plan.AddExclusion, plan.RemoveExclusion:
		m.changeExclusions(o)
	case plan.RequestCertificate:
		facts := m.IdentityOf(o.Identity.Name)
		facts.Request = newRequestPEM(o.Identity.CommonName, o.Identity.Organization)
		m.setIdentity(o.Identity.Name, facts)
	case plan.InstallCertificate:
		m.setIdentity(o.Identity.Name, plan.IdentityFacts{Current: &plan.CertificateFacts{
			CommonName: o.Identity.CommonName, Organization: []string{o.Identity.Organization}, NotAfter: now.Add(time.Hour),
		}})
	default:
		m.doFile(step.Operation)
		m.doService(step.Operation)
	}
}

func (m *model) setIdentity(name string, facts plan.IdentityFacts) {
	if name == "" {
		m.Identity = facts
		return
	}
	m.Identities = maps.Clone(m.Identities)
	if m.Identities == nil {
		m.Identities = map[string]plan.IdentityFacts{}
	}
	m.Identities[name] = facts
}

func (m *model) changeExclusions(operation plan.Operation) {
	if m.refuses {
		m.Ledger.Refusal = &plan.Refusal{BootID: m.System.BootID, Reason: "refused"}
		return
	}
	switch o := operation.(type) {
	case plan.AddExclusion:
		m.Ledger = m.Ledger.WithExclusion(o.Exclusion)
		m.Antivirus.Exclusions = append(m.Antivirus.Exclusions, o.Exclusion)
	case plan.RemoveExclusion:
		m.Antivirus.Exclusions = orNil(slices.DeleteFunc(slices.Clone(m.Antivirus.Exclusions), o.Exclusion.Is))
	}
}

func (m *model) doFile(operation plan.Operation) {
	switch o := operation.(type) {
	case plan.MakeDirectory:
		fact := m.Files[o.Directory.Path]
		fact.Directory, fact.Access = true, o.Directory.Access
		m.Files[o.Directory.Path] = fact
	case plan.WriteFile:
		content := o.File.Bytes()
		m.Files[o.File.Path] = plan.FileFact{SHA256: plan.Digest(content), Text: plan.TextDigest(content),
			Access: plan.FileAccess(o.File)}
	case plan.MakeLink:
		m.Files[o.Link.Path] = plan.FileFact{LinkTarget: o.Link.Target}
	case plan.InstallRelease:
		m.Files[nodespec.ReleasesRoot] = plan.FileFact{Directory: true}
		m.Files[o.Release.Directory] = plan.FileFact{Directory: true}
		m.Files[o.Release.Manifest()] = plan.FileFact{}
		for _, file := range o.Release.Files {
			m.Files[o.Release.Path(file)] = plan.FileFact{SHA256: file.SHA256}
			m.Payload[file.SHA256] = o.Release.Path(file)
		}
	case plan.RemovePath:
		maps.DeleteFunc(m.Files, func(path string, _ plan.FileFact) bool {
			return nodespec.IsWithin(path, o.Path) && !isKept(path, o)
		})
	}
}

func withoutEntry(list []string, entry string) []string {
	return orNil(slices.DeleteFunc(slices.Clone(list), func(each string) bool { return each == entry }))
}

// isKept reports whether a removal keeps the path.
func isKept(path string, o plan.RemovePath) bool {
	if o.Keep == nil {
		return false
	}
	entry, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, o.Path), `\`), `\`)
	return entry == "" || slices.Contains(o.Keep, entry)
}

func (m *model) doService(operation plan.Operation) {
	switch o := operation.(type) {
	case plan.ConfigureService:
		service := m.Services[o.Service.Name]
		service.ServiceConfig = o.Service
		if service.State == "" {
			service.State = host.ServiceStopped
		}
		m.Services[o.Service.Name] = service
	case plan.SetStartType:
		service := m.Services[o.Service]
		service.StartType = o.StartType
		m.Services[o.Service] = service
		m.Login.StartType = o.StartType
	case plan.StartService:
		m.start(o.Service)
	case plan.StopService:
		m.stop(o.Service)
	case plan.EndPods:
		m.disrupted = true
	case plan.DeleteService:
		delete(m.Services, o.Service)
	case plan.RestoreService:
		m.Services[o.Service.Name] = o.Service
	case plan.KillProcess:
		m.disrupted = true
		m.Processes = slices.DeleteFunc(m.Processes, func(p host.Process) bool { return p.PID == o.Process.PID })
	case plan.CreateEndpoint:
		m.Endpoints = []host.HNSEndpoint{{Name: o.Name, Network: o.Network, Address: o.Address}}
	case plan.AttachEndpoint:
		for i := range m.Endpoints {
			m.Endpoints[i].Attached = m.Endpoints[i].Attached || m.Endpoints[i].Name == o.Name
		}
		m.RegisteringAdapter = ""
	case plan.DisableDNSRegistration:
		m.RegisteringAdapter = ""
	case plan.DeleteNetwork:
		m.disrupted, m.Routes = true, nil
		m.Networks = slices.DeleteFunc(m.Networks, func(n host.HNSNetwork) bool { return n.Name == o.Network })
		m.Endpoints = slices.DeleteFunc(m.Endpoints, func(e host.HNSEndpoint) bool { return e.Network == o.Network })
	}
}

func (m *model) rebootHost() {
	_, m.disrupted = m.Services[nodespec.ServiceKubelet]
	for name, state := range m.Features {
		switch state {
		case host.FeatureEnablePending:
			m.Features[name] = host.FeatureEnabled
		case host.FeatureDisablePending:
			m.Features[name] = host.FeatureDisabled
		}
	}
	// None of these survive a reboot.
	m.Networks, m.Endpoints, m.Routes = nil, nil, nil
	if m.System.PendingHostName != "" {
		m.System.HostName, m.System.PendingHostName = m.System.PendingHostName, ""
	}
	for name, service := range m.Services {
		service.State, service.RunningCommandLine = host.ServiceStopped, ""
		m.Services[name] = service
	}
	for _, name := range slices.Sorted(maps.Keys(m.Services)) {
		if m.Services[name].StartType == host.StartAutomatic {
			m.start(name)
		}
	}
	m.Processes = nil
}

// start starts a service after its dependencies. The overlay creates the network.
func (m *model) start(name string) {
	service, exists := m.Services[name]
	if !exists || service.State == host.ServiceRunning {
		return
	}
	for _, dependency := range service.Dependencies {
		m.start(dependency)
	}
	service.State, service.RunningCommandLine = host.ServiceRunning, service.CommandLine
	m.Services[name] = service
	m.loaded[name] = map[string]string{}
	for _, path := range m.reads[name] {
		m.loaded[name][path] = m.Files[path].Text
	}
	if name == m.overlay && m.subnet != "" {
		if !slices.ContainsFunc(m.Networks, func(n host.HNSNetwork) bool { return n.Subnet == m.subnet }) {
			m.Routes = nil // the network acquires the adapter
		}
		m.Networks = []host.HNSNetwork{{Name: m.network, Type: "Overlay", Subnet: m.subnet}}
	}
}

// stop stops a service after its dependents.
func (m *model) stop(name string) {
	for _, other := range slices.Sorted(maps.Keys(m.Services)) {
		if slices.Contains(m.Services[other].Dependencies, name) && m.Services[other].State != host.ServiceStopped {
			m.stop(other)
		}
	}
	service := m.Services[name]
	m.disrupted = m.disrupted || service.State == host.ServiceRunning && m.disruptive[name]
	service.State, service.RunningCommandLine = host.ServiceStopped, ""
	m.Services[name] = service
}

// key is the signing key of all certificates and requests in these tests.
var key = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

func newRequestPEM(commonName, organization string) string {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName, Organization: []string{organization}}}
	data, err := x509.CreateCertificateRequest(rand.Reader, template, key())
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data}))
}

func newCertificatePEM(commonName string, signed *ecdsa.PrivateKey, notAfter time.Time) string {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: commonName, Organization: []string{"system:nodes"}},
		NotBefore: now.Add(-time.Hour), NotAfter: notAfter,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, signed.Public(), key())
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
}

var nodeCertificate = sync.OnceValue(func() string { return newCertificatePEM("system:node:a", key(), now.Add(time.Hour)) })
