package payload

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// AgentPackage is the main package that identifies the real agent in the build information of an executable.
const AgentPackage = "github.com/windows-machine-config/wmco/cmd/wicd"

// windowBytes is small, so that fifty hosts in one process can unpack at once.
const windowBytes = 1 << 20

const kib = 1 << 10

// Kubernetes is the minor version of Kubernetes of the lab's cluster.
const Kubernetes = "1.36"

// RealSizePercent is the SizePercent for a total size similar to the real executables.
const RealSizePercent = 1200

// Options modify the payload. The zero value creates the versions of the real payload in about 20 MB.
type Options struct {
	// Versions overrides the versions of components; for kubelet and kube-proxy, the versions for Kubernetes.
	Versions map[string]string
	// Minors are the versions of kubelet and kube-proxy by minor version of Kubernetes, besides those for Kubernetes:
	// "1.37": "v1.37.2".
	Minors map[string]string
	// SizePercent scales the sizes of the simulated executables. Zero: 100.
	SizePercent int
	// Defects maps components to their faults.
	Defects map[string]Defect
	// AgentBytes is the size of a simulated agent. Zero: 64 KiB.
	AgentBytes int
	// Earlier are payloads that hosts may have: patches are created from these.
	Earlier []*payload.Payload
	// Program is the Windows program at the beginning of every simulated executable, for hosts that really run
	// it. Nil: for simulated hosts.
	Program []byte
}

type component struct {
	name, version string
	platforms     []string
	files         []file
}

type file struct {
	name string
	size int
}

// components are the parts of a Windows node, with the versions of the real payload.
var components = []component{
	{"containerd", "v2.4.2", nil, []file{{"containerd.exe", 2500 * kib}, {"containerd-shim-runhcs-v1.exe", 1000 * kib}}},
	{"kubelet", "v1.36.3", nil, []file{{"kubelet.exe", 4000 * kib}}},
	{"kube-proxy", "v1.36.3", nil, []file{{"kube-proxy.exe", 3000 * kib}}},
	{"kube-log-runner", "v0.36.3", nil, []file{{"kube-log-runner.exe", 250 * kib}}},
	{"cni", "v1.9.1", nil, []file{{"win-overlay.exe", 600 * kib}, {"host-local.exe", 250 * kib},
		{"win-bridge.exe", 600 * kib}}},
	{"hybrid-overlay-node", "v1.0.0", nil, []file{{"hybrid-overlay-node.exe", 2000 * kib}}},
	{"windows_exporter", "v0.31.8", nil, []file{{"windows_exporter.exe", 1500 * kib}}},
	{"csi-proxy", "v1.3.0", nil, []file{{"csi-proxy.exe", 1500 * kib}}},
	{"azure-cloud-node-manager", "v1.36.5", []string{"Azure"}, []file{{"azure-cloud-node-manager.exe", 2000 * kib}}},
	{"ecr-credential-provider", "v1.36.0", []string{"AWS"}, []file{{"ecr-credential-provider.exe", 1000 * kib}}},
}

// Generate writes the lab's payload to a directory. wicdExe is the agent, built for Windows; if empty, the
// agent is also simulated. version is the version of the operator. Equal arguments yield equal files.
func Generate(directory, wicdExe, version string, options Options) (*payload.Payload, error) {
	agent, err := options.agentSource(wicdExe, version)
	if err != nil {
		return nil, fmt.Errorf("make the lab's payload: %w", err)
	}
	build := payload.Build{
		Version: version, WindowBytes: windowBytes, Components: []payload.Source{agent},
		Earlier: options.Earlier,
	}
	for _, c := range components {
		build.Components = append(build.Components, options.componentSources(c)...)
	}
	p, err := payload.Write(directory, build)
	if err != nil {
		return nil, fmt.Errorf("make the lab's payload: %w", err)
	}
	return p, nil
}

// componentSources returns a component: for kubelet and kube-proxy, one for each minor version of Kubernetes.
func (o Options) componentSources(c component) []payload.Source {
	if version, ok := o.Versions[c.name]; ok {
		c.version = version
	}
	if c.name != "kubelet" && c.name != "kube-proxy" {
		return []payload.Source{o.componentSource(c)}
	}
	versions := map[string]string{Kubernetes: c.version}
	for minor, version := range o.Minors {
		versions[minor] = version
	}
	var sources []payload.Source
	for _, minor := range slices.Sorted(maps.Keys(versions)) {
		c.version = versions[minor]
		source := o.componentSource(c)
		source.Minors, source.Required = []string{minor}, false
		sources = append(sources, source)
	}
	return sources
}

func (o Options) componentSource(c component) payload.Source {
	source := payload.Source{Component: simulatedComponent(c.name, c.version)}
	source.Platforms = c.platforms
	for _, f := range c.files {
		e := Executable{Component: c.name, File: f.name, Version: c.version, Size: f.size, Defect: o.Defects[c.name]}
		if o.SizePercent > 0 {
			e.Size = max(f.size*o.SizePercent/100, 4*kib)
		}
		addFile(&source, e, o.Program)
	}
	return source
}

func simulatedComponent(name, version string) payload.Component {
	return payload.Component{Name: name, Version: version, Source: "lab stand-in", Required: true, StandIn: true}
}

// addFile adds the simulated executable e: for simulated hosts, or as a real program if program is set.
func addFile(source *payload.Source, e Executable, program []byte) {
	source.Files = append(source.Files, payload.File{Path: e.File})
	source.Content = append(source.Content, func() (io.ReadCloser, error) {
		content, err := e.Content(), error(nil)
		if program != nil {
			content, err = e.Program(program)
		}
		return io.NopCloser(bytes.NewReader(content)), err
	})
}

// agentSource returns the agent built for Windows, or a simulated agent. Only a simulated agent may have a version in
// Versions.
func (o Options) agentSource(wicdExe, version string) (payload.Source, error) {
	if wicdExe == "" {
		version = cmp.Or(o.Versions[payload.ComponentAgent], version)
		source := payload.Source{Component: simulatedComponent(payload.ComponentAgent, version)}
		addFile(&source, Executable{
			Component: payload.ComponentAgent, File: "wicd.exe", Version: version, Size: cmp.Or(o.AgentBytes, 64*kib),
			Defect: o.Defects[payload.ComponentAgent],
		}, nil)
		return source, nil
	}
	info, err := buildinfo.ReadFile(wicdExe)
	if err != nil {
		return payload.Source{}, fmt.Errorf("the agent %s is no Go program: %w; build it with GOOS=windows go build %s",
			wicdExe, err, AgentPackage)
	}
	if info.Path != AgentPackage {
		return payload.Source{}, fmt.Errorf("%s is %s and not the agent %s", wicdExe, info.Path, AgentPackage)
	}
	return payload.Source{
		Component: payload.Component{
			Name: payload.ComponentAgent, Version: version, Source: AgentPackage + "@" + version, Required: true,
			Files: []payload.File{{Path: "wicd.exe"}},
		},
		Content: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) { return os.Open(wicdExe) }},
	}, nil
}
