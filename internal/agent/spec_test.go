package agent_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

const (
	podSubnet  = "10.132.1.0/24"
	hnsNetwork = "OVNKubernetesHybridOverlayNetwork"
	pki        = `C:\var\lib\kubelet\pki`
	cniConfig  = `C:\k\cni\cni.conf`
	// metadataRoute leads to the metadata service of a cloud.
	metadataRoute = "169.254.169.254/32"
)

// programContent returns the content of a fake executable, by its name and version.
func programContent(name, version string) []byte {
	return []byte("MZ " + name + " " + version + "\n" + strings.Repeat("filler ", 200))
}

func hexDigest(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// newAuthority returns a certificate authority, always the same for a name.
func newAuthority(name string) nodespec.TrustedCertificate {
	seed := sha256.Sum256([]byte(name))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return nodespec.TrustedCertificate{Fingerprint: hexDigest(der), Subject: template.Subject.String(), DER: der}
}

// components are the files of the test payload by component.
var components = map[string][]string{
	"containerd":          {"containerd.exe", "shim.exe"},
	"kubelet":             {"kubelet.exe"},
	"hybrid-overlay-node": {"hybrid-overlay-node.exe"},
	"kube-proxy":          {"kube-proxy.exe"},
	"cni":                 {`bin\win-overlay.exe`},
}

var componentNames = []string{"cni", "containerd", "hybrid-overlay-node", "kube-proxy", "kubelet"}

// versions of components other than v1.
type versions map[string]string

func (v versions) versionOf(component string) string {
	if version, ok := v[component]; ok {
		return version
	}
	return "v1"
}

func (v versions) releaseOf(component string) nodespec.Release {
	release := nodespec.Release{Component: component, Version: v.versionOf(component)}
	all := sha256.New()
	for _, name := range components[component] {
		content := programContent(name, release.Version)
		all.Write(content)
		release.Files = append(release.Files, nodespec.PayloadFile{Name: name, SHA256: hexDigest(content), Size: int64(len(content))})
	}
	release.Directory = nodespec.ReleaseDirectory(component, hex.EncodeToString(all.Sum(nil)))
	return release
}

var agentProgram = programContent("wicd.exe", "v1")

// newSpec returns a small node that uses all features of a plan.
func newSpec(v versions) nodespec.NodeSpec {
	spec := nodespec.NodeSpec{
		Schema: nodespec.SchemaVersion, Instance: "win-a", Version: "1.0.0", HostName: "node-a", NodeName: "node-a",
		Features: []string{"Containers"}, OptionalFeatures: []string{"Containers-HNS", "Containers-SDN"},
		Environment: map[string]string{"HTTPS_PROXY": "http://proxy.example:3128"},
		Firewall: []host.FirewallRule{
			{Name: "ContainerLogsPort", DisplayName: "ContainerLogsPort", Protocol: "TCP", LocalPort: 10250, Enabled: true, Allow: true},
			{Name: nodespec.RuleSSH, DisplayName: "SSH", Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true},
		},
		Identity: nodespec.Identity{Directory: pki, CommonName: "system:node:node-a", Organization: "system:nodes"},
		Network: nodespec.Network{
			HNSNetwork: hnsNetwork, OwnedNetworks: []string{"BaseOVNKubernetesHybridOverlayNetwork", hnsNetwork}, SourceVIPEndpoint: "VIPEndpoint",
		},
		Files: []nodespec.File{
			{Path: `C:\k\kubelet.conf`, Content: "kind: KubeletConfiguration\n"},
			{Path: `C:\k\containerd\containerd_conf.toml`, Content: "version = 3\n"},
			{Path: `C:\k\cni\cni.conf`, Content: "subnet: ${POD_SUBNET}\n", Needs: []nodespec.Need{nodespec.NeedPodSubnet, nodespec.NeedHNSNetwork}},
			{
				Path: `C:\k\kube-proxy.conf`, Content: "cidr: ${POD_SUBNET}\nvip: ${SOURCE_VIP}\n",
				Needs: []nodespec.Need{nodespec.NeedPodSubnet, nodespec.NeedSourceVIP},
			},
			{Path: `C:\k\config.json`, Secret: "credentials canary\n"},
		},
		TrustedCertificates: []nodespec.TrustedCertificate{newAuthority("Example CA")},
		Routes:              []string{metadataRoute},
		Logs:                []nodespec.Log{{Path: `C:\var\log\containerd\containerd.log`, MaxBytes: 1000, MaxAge: 24 * time.Hour}},
	}
	for _, component := range componentNames {
		release := v.releaseOf(component)
		spec.Releases = append(spec.Releases, release)
		for _, file := range release.Files {
			link := `C:\k\` + file.Name[strings.LastIndexByte(file.Name, '\\')+1:]
			spec.Links = append(spec.Links, nodespec.Link{Path: link, Target: release.Path(file)})
		}
	}
	for _, name := range []string{"containerd.exe", "shim.exe"} {
		spec.Exclusions = append(spec.Exclusions, host.Exclusion{Kind: host.ExcludeProcess, Value: v.releaseOf("containerd").Directory + `\` + name})
	}
	spec.Services = newServices(v)
	spec.Directories = newDirectories(spec.Services)
	spec.Checks = []nodespec.Check{
		{Name: "KubeletRuns", Kind: nodespec.CheckService, Target: "kubelet"},
		{Name: "KubeletHealthy", Kind: nodespec.CheckHTTP, Target: "http://127.0.0.1:10248/healthz", Timeout: 30 * time.Second},
		{Name: "ContainerRuntimeReady", Kind: nodespec.CheckContainerRuntime, Target: "npipe://./pipe/containerd-containerd", Timeout: 30 * time.Second},
		{Name: "HNSNetworkReady", Kind: nodespec.CheckHNSNetwork, Target: hnsNetwork},
		{Name: "CNIConfigured", Kind: nodespec.CheckFile, Target: `C:\k\cni\cni.conf`},
		{Name: "EndpointCanBeMade", Kind: nodespec.CheckEndpoint, Target: hnsNetwork},
		{Name: "HNSNetworkReach", Kind: nodespec.CheckHNSNetworkReach, Target: hnsNetwork, Advisory: true},
		{Name: "AntivirusExclusions", Kind: nodespec.CheckExclusions, Advisory: true},
		{Name: "ExporterServes", Kind: nodespec.CheckHTTP, Target: "http://127.0.0.1:9182/metrics", Advisory: true},
	}
	return spec
}

func newDirectories(services []nodespec.Service) []nodespec.Directory {
	var list []nodespec.Directory
	for _, path := range []string{nodespec.Root, nodespec.ReleasesRoot, `C:\k\containerd`, `C:\k\cni`} {
		list = append(list, nodespec.Directory{Path: path, Access: host.AccessAdministrators})
	}
	paths := []string{
		`C:\var`, `C:\var\lib`, `C:\var\lib\kubelet`, `C:\var\lib\cni`,
		nodespec.LogRoot, `C:\ProgramData\containerd`,
	}
	for _, service := range services {
		paths = append(paths, nodespec.LogDirectory(service.Name))
	}
	for _, path := range paths {
		list = append(list, nodespec.Directory{Path: path, Access: host.AccessInherited})
	}
	return append(list, nodespec.Directory{Path: pki, Access: host.AccessAdministrators})
}

func newServices(v versions) []nodespec.Service {
	service := func(name string, disturbs bool, dependencies ...string) nodespec.Service {
		start := host.StartManual
		if name == "containerd" || name == nodespec.ServiceAgent {
			start = host.StartAutomatic // after a boot the agent starts the rest
		}
		return nodespec.Service{DisruptsPods: disturbs, ServiceConfig: host.ServiceConfig{
			Name: name, DisplayName: name, Description: nodespec.DescriptionPrefix + " " + name, StartType: start,
			Dependencies: dependencies, RestartDelays: []time.Duration{time.Hour}, ResetPeriod: time.Hour,
		}}
	}
	containerd := service("containerd", true)
	containerd.CommandLine = v.releaseOf("containerd").Directory + `\containerd.exe --config C:\k\containerd\containerd_conf.toml`
	containerd.RestartOn = []string{`C:\k\containerd\containerd_conf.toml`}
	kubelet := service("kubelet", false, "containerd")
	kubelet.CommandLine = v.releaseOf("kubelet").Directory + `\kubelet.exe --config=C:\k\kubelet.conf`
	kubelet.RestartOn = []string{`C:\k\kubelet.conf`}
	kubelet.Needs = []nodespec.Need{nodespec.NeedCertificate}
	overlay := service("hybrid-overlay-node", true, "kubelet")
	overlay.CommandLine = v.releaseOf("hybrid-overlay-node").Directory + `\hybrid-overlay-node.exe`
	overlay.Needs = []nodespec.Need{nodespec.NeedCertificate}
	proxy := service("kube-proxy", true, "hybrid-overlay-node")
	proxy.CommandLine = v.releaseOf("kube-proxy").Directory + `\kube-proxy.exe --config=C:\k\kube-proxy.conf`
	proxy.RestartOn = []string{`C:\k\kube-proxy.conf`}
	proxy.Needs = []nodespec.Need{nodespec.NeedPodSubnet, nodespec.NeedSourceVIP}
	wicd := service(nodespec.ServiceAgent, false)
	wicd.CommandLine = nodespec.AgentPath(hexDigest(agentProgram)) + " service"
	return []nodespec.Service{containerd, kubelet, overlay, proxy, wicd}
}

// testPayload creates the payload of the given versions once.
func testPayload(directory string, v versions) (*payload.Payload, error) {
	build := payload.Build{Version: "1.0.0", WindowBytes: 1 << 20, Components: []payload.Source{newSource("wicd", "v1", []string{"wicd.exe"})}}
	for _, component := range componentNames {
		build.Components = append(build.Components, newSource(component, v.versionOf(component), components[component]))
	}
	return payload.Write(directory, build)
}

func newSource(component, version string, names []string) payload.Source {
	s := payload.Source{Component: payload.Component{Name: component, Version: version, Source: "test", Required: true, StandIn: true}}
	for _, name := range names {
		s.Files = append(s.Files, payload.File{Path: name})
		s.Content = append(s.Content, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(programContent(name, version))), nil
		})
	}
	return s
}

var archives struct {
	sync.Mutex
	packed map[string][]byte
}

// packArchive returns an archive of the files with these digests.
func packArchive(directory string, v versions, sums []string) ([]byte, error) {
	key := fmt.Sprint(v, sums)
	archives.Lock()
	defer archives.Unlock()
	if data, ok := archives.packed[key]; ok {
		return data, nil
	}
	p, err := testPayload(directory, v)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	archive, err := p.Archive(sums)
	if err != nil {
		return nil, err
	}
	if _, err := buffer.ReadFrom(archive.Reader()); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if archives.packed == nil {
		archives.packed = map[string][]byte{}
	}
	archives.packed[key] = buffer.Bytes()
	return buffer.Bytes(), nil
}
