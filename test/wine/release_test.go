package wine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	nodepayload "github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// initialVersion is the version of the operator that configures the hosts as nodes.
const initialVersion = "1.0.0-lab"

// release is a version of the operator with its payload.
type release struct {
	testenv.Release
	payload *nodepayload.Payload
}

// releaseIn returns the release with the payload in a directory.
func releaseIn(t *testing.T, version, dir string) release {
	t.Helper()
	p, err := nodepayload.Load(dir)
	requireNoError(t, err)
	return release{testenv.Release{Version: version, PayloadDirectory: dir}, p}
}

// newRelease creates a release with another agent and another kubelet, and with patches for earlier releases.
func newRelease(t *testing.T, version, kubelet string, defect payload.Defect, earlier ...release) release {
	t.Helper()
	options := payloadOptions
	options.Versions = map[string]string{nodespec.ServiceKubelet: kubelet}
	options.Defects = map[string]payload.Defect{nodespec.ServiceKubelet: defect}
	for _, r := range earlier {
		options.Earlier = append(options.Earlier, r.payload)
	}
	return releaseIn(t, version, payloadOf(t, version, options))
}

// kubeletVersion returns the release's kubelet version.
func (r release) kubeletVersion() string {
	c, _ := r.payload.Manifest().Component(nodespec.ServiceKubelet)
	return c.Version
}

// replaceOperator ends an operator and starts an operator of another release, as OLM does.
func (l *lab) replaceOperator(o *testenv.Operator, to release) *testenv.Operator {
	l.Helper()
	requireNoError(l.T, o.Stop())
	next, err := l.RunOperator(testenv.WithRelease(to.Release))
	requireNoError(l.T, err)
	return next
}

// checkRelease checks that a host has only the programs of a release, except for the agent, under the documented
// names, and runs them.
func (l *lab) checkRelease(h *wine.Host, want release) {
	l.Helper()
	agent, err := want.payload.Agent()
	requireNoError(l.T, err)
	spec := specOf(l.T, h)
	kubelet := slices.IndexFunc(spec.Releases, func(r nodespec.Release) bool {
		return r.Component == nodespec.ServiceKubelet
	})
	if spec.Version != want.Version || kubelet < 0 || spec.Releases[kubelet].Version != want.kubeletVersion() {
		l.Fatalf("%s is held to a spec of version %s with %+v", h.Name(), spec.Version, spec.Releases)
	}
	var folders []string
	for _, r := range spec.Releases {
		folders = append(folders, r.Directory)
	}
	slices.Sort(folders)
	// The agent deletes the rollback target after the node was verified.
	waitUntil(l.T, fmt.Sprintf("%s has the releases %q and no way back", h.Name(), folders), func() bool {
		return slices.Equal(list(l.T, h, nodespec.ReleasesRoot), folders) && !hasFile(l.T, h, nodespec.RollbackTargetPath)
	})
	l.checkLinks(h, spec)
	l.checkServices(h, spec, nodespec.AgentPath(agent.SHA256))
}

// checkLinks checks that the documented names lead to the programs.
func (l *lab) checkLinks(h *wine.Host, spec nodespec.NodeSpec) {
	l.Helper()
	for _, link := range spec.Links {
		path, err := h.Path(link.Path)
		requireNoError(l.T, err)
		target, err := os.Readlink(path)
		if err != nil || !strings.HasSuffix(target, strings.ReplaceAll(strings.TrimPrefix(link.Target, `C:`), `\`, "/")) ||
			!hasFile(l.T, h, link.Target) {
			l.Errorf("%s on %s leads to %s (%v), want %s", link.Path, h.Name(), target, err, link.Target)
		}
	}
	kubelet := spec.Releases[slices.IndexFunc(spec.Releases, func(r nodespec.Release) bool {
		return r.Component == nodespec.ServiceKubelet
	})]
	result, err := h.Exec(l.Context(), nodespec.Root+`\kubelet.exe --version`)
	requireNoError(l.T, err)
	if !strings.Contains(result.Stdout, kubelet.Version) {
		l.Errorf("the documented kubelet of %s says %q (%s), want %s", h.Name(), result.Stdout,
			result.Stderr, kubelet.Version)
	}
}

// checkServices checks that the services run programs of the spec's releases, and the release's agent.
func (l *lab) checkServices(h *wine.Host, spec nodespec.NodeSpec, agent string) {
	l.Helper()
	programs := []string{agent}
	for _, r := range spec.Releases {
		for _, file := range r.Files {
			programs = append(programs, r.Path(file))
		}
	}
	for name, s := range servicesOf(l.T, h, spec) {
		line := strings.TrimPrefix(s.CommandLine, `"`)
		if s.Process == 0 || !slices.ContainsFunc(programs, func(program string) bool {
			return strings.HasPrefix(line, program)
		}) {
			l.Errorf("service %s of %s has process %d of %s", name, h.Name(), s.Process, s.CommandLine)
		}
	}
}

// service is the state of a service in the service control manager. Process is 0 unless the service runs.
type service struct {
	CommandLine string
	Process     int
}

// servicesOf returns the services of a spec on a host, by name.
func servicesOf(t *testing.T, h *wine.Host, spec nodespec.NodeSpec) (found map[string]service) {
	t.Helper()
	words := "list " + nodespec.ServiceAgent
	for _, s := range spec.Services {
		words += " " + s.Name
	}
	requireNoError(t, json.Unmarshal([]byte(runAdministrator(t, h, words)), &found))
	return found
}

// specOf returns the current NodeSpec of a host.
func specOf(t *testing.T, h *wine.Host) (spec nodespec.NodeSpec) {
	t.Helper()
	path, err := h.Path(nodespec.SpecPath)
	requireNoError(t, err)
	data, err := os.ReadFile(path)
	requireNoError(t, err)
	requireNoError(t, json.Unmarshal(data, &spec))
	return spec
}

// list returns the entries of a directory on a host.
func list(t *testing.T, h *wine.Host, dir string) (paths []string) {
	t.Helper()
	path, err := h.Path(dir)
	requireNoError(t, err)
	entries, err := os.ReadDir(path)
	requireNoError(t, err)
	for _, entry := range entries {
		paths = append(paths, dir+`\`+entry.Name())
	}
	return paths
}

// agentCommands returns the agent commands that ran on a host since a position in the journal, each with the path of
// the agent.
func agentCommands(h *wine.Host, since int) (lines []string) {
	for _, e := range h.Journal()[since:] {
		if e.Kind == wine.KindExec && strings.Contains(e.Detail, nodespec.AgentProgram+" ") {
			lines = append(lines, e.Detail)
		}
	}
	return lines
}

// isReadyWithVersion returns a function that reports whether an instance is Ready and of a version.
func isReadyWithVersion(version string) func(*v1alpha1.WindowsInstance) bool {
	return func(i *v1alpha1.WindowsInstance) bool { return testenv.IsReady(i) && i.Status.Version == version }
}
