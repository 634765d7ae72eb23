package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Objects on hosts that legacy operators, before version 12, created, of both generations: WICD with containerd,
// and before it WMCB with Docker. Only these objects certainly belong to a legacy operator. Docker itself does not:
// it was part of the image.

// legacyFiles are the files of legacy operators, including files with credentials. Files that the spec also lists
// are replaced and not removed.
var legacyFiles = pathsInDirectories(map[string][]string{
	nodespec.Root: {
		"kubelet.exe", "kube-proxy.exe", "kube-log-runner.exe", "csi-proxy.exe", "hybrid-overlay-node.exe",
		"windows_exporter.exe",
		"windows-instance-config-daemon.exe", "azure-cloud-node-manager.exe", "ecr-credential-provider.exe", "wmcb.exe",
		"kubelet.conf", "kube-proxy.conf", "kubelet-ca.crt", "bootstrap-ca.crt", "bootstrap-kubeconfig",
		"kubeconfig", "wicd-kubeconfig",
		"ca-bundle.crt", "imported-certs.pem", "cloud.conf", "credential-provider-config.yaml",
	},
	`C:\k\cni`:        {"host-local.exe", "win-bridge.exe", "win-overlay.exe", "flannel.exe"},
	`C:\k\cni\config`: {"cni.conf"},
	`C:\k\containerd`: {"containerd.exe", "containerd-shim-runhcs-v1.exe", "containerd_conf.toml"},
	`C:\k\tls`:        {"windows-exporter-webconfig.yaml"},
	`C:\k\tls\certs`:  {"tls.crt", "tls.key"},
	`C:\Temp`: {"gcp-get-hostname.ps1", "windows-defender-exclusion.ps1", "hns.psm1", "network-conf.ps1",
		"wget-ignore-cert.ps1"},
	`C:\Windows\Temp`: {"worker.ign"},
})

// legacyDirectories are directories of legacy operators without foreign content, parents after children.
var legacyDirectories = []string{`C:\k\wicd-certs`, `C:\k\tls\certs`, `C:\k\tls`}

// legacyLogs are log directories, which are kept for administrators while the host is a node.
var legacyLogs = []string{
	`C:\k\log`, nodespec.LogDirectory(nodespec.ServiceHybridOverlay), nodespec.LogDirectory(nodespec.ServiceAgent),
}

// legacyCertificatesDir is the directory of the hybrid overlay's client certificates and keys, with a file for each
// certificate request.
const legacyCertificatesDir = `C:\k\cni\config`

// legacyMirrorsDir is the directory in which WICD's operator created a directory with a hosts.toml file for each
// registry with mirrors.
const legacyMirrorsDir = `C:\k\containerd\registries`

// LegacyImportedPath is the path of the list of certificates that WICD added to the root store, in PEM.
const LegacyImportedPath = `C:\k\imported-certs.pem`

// legacyMarkers are files that only legacy operators create.
var legacyMarkers = []string{`C:\k\windows-instance-config-daemon.exe`, `C:\k\wicd-kubeconfig`, `C:\k\wmcb.exe`}

// legacyVariables are the variables that WICD set, and removed if the cluster had no proxy. All values belong to
// WICD.
var legacyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

func pathsInDirectories(names map[string][]string) []string {
	var paths []string
	for _, folder := range slices.Sorted(maps.Keys(names)) {
		for _, name := range names[folder] {
			paths = append(paths, folder+`\`+name)
		}
	}
	return paths
}

// LegacyPaths returns all paths that a legacy operator may have created, except the paths of LegacyEntries.
func LegacyPaths() []string { return slices.Concat(legacyFiles, legacyDirectories, legacyLogs) }

// LegacyListings returns the directories in which a legacy operator created entries with host-specific names.
func LegacyListings() []string { return []string{legacyCertificatesDir, legacyMirrorsDir} }

// LegacyEntries returns the paths that a legacy operator, if any, created for an entry of one of those directories.
func LegacyEntries(folder, name string) []string {
	path := folder + `\` + name
	switch {
	case nodespec.IsSamePath(folder, legacyMirrorsDir):
		return []string{path, path + `\hosts.toml`}
	case nodespec.IsSamePath(folder, legacyCertificatesDir) && isLegacyCertificate(name):
		return []string{path}
	}
	return nil
}

func isLegacyCertificate(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "ovnkube-client-") && strings.HasSuffix(name, ".pem")
}

// isLegacyMirror reports whether a path belongs to a registry's mirrors. Unlike the other legacy paths, the parent
// directory is also used by this operator. Unused entries are removed like all other stale paths.
func isLegacyMirror(path string) bool {
	return nodespec.IsWithin(path, legacyMirrorsDir) && !nodespec.IsSamePath(path, legacyMirrorsDir)
}

// LegacyVariables returns the environment variables that a legacy operator may have set.
func LegacyVariables() []string { return legacyVariables }

func isKnownLegacyPath(path string) bool {
	if folder, name, ok := cutName(path); ok && nodespec.IsSamePath(folder, legacyCertificatesDir) && isLegacyCertificate(name) {
		return true
	}
	return hasPath(legacyFiles, path) || hasPath(legacyDirectories, path) || hasPath(legacyLogs, path)
}

func cutName(path string) (folder, name string, ok bool) {
	i := strings.LastIndexByte(path, '\\')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func hasPath(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(each string) bool { return nodespec.IsSamePath(each, path) })
}

// LegacyNode describes the parts of a legacy node as a spec: services by name only, directories and networks. The
// spec is never applied. It serves the removal of a host that was not adopted.
func LegacyNode() nodespec.NodeSpec {
	spec := nodespec.NodeSpec{
		Identity: nodespec.Identity{Directory: `C:\var\lib\kubelet\pki`},
		Network: nodespec.Network{OwnedNetworks: []string{"BaseOVNKubernetesHybridOverlayNetwork",
			"OVNKubernetesHybridOverlayNetwork"}},
	}
	folders := []string{
		nodespec.Root, `C:\k\cni`, `C:\k\cni\config`, `C:\k\containerd`, legacyMirrorsDir, `C:\k\etc`,
		`C:\k\tls`, `C:\k\wicd-certs`,
		`C:\var`, `C:\var\lib`, nodespec.LogRoot, `C:\var\lib\kubelet`, `C:\var\lib\cni`, `C:\ProgramData\containerd`,
	}
	for _, name := range []string{
		"containerd", nodespec.ServiceKubelet, "hybrid-overlay-node", "kube-proxy", "windows_exporter", "csi-proxy",
		"cloud-node-manager",
		nodespec.ServiceAgent,
	} {
		spec.Services = append(spec.Services, nodespec.Service{ServiceConfig: host.ServiceConfig{Name: name}})
		folders = append(folders, nodespec.LogDirectory(name))
	}
	for _, folder := range folders {
		spec.Directories = append(spec.Directories, nodespec.Directory{Path: folder, Access: host.AccessInherited})
	}
	return spec
}

// RecordLegacy returns the ledger of a host that only a legacy operator has changed, from facts that were gathered
// for LegacyNode. ok is false without traces of a legacy operator.
func RecordLegacy(facts Facts) (ledger Ledger, ok bool) {
	spec := LegacyNode()
	if !findLeftovers(facts, spec).found {
		return Ledger{}, false
	}
	return Record(facts, spec), true
}

// stopForeignAgent stops a foreign agent before all other steps, because a foreign agent would revert the changes.
func (m *planner) stopForeignAgent() {
	fact, runs := m.runningService(nodespec.ServiceAgent)
	if !runs {
		return
	}
	line := fact.RunningCommandLine
	if line == "" {
		line = fact.CommandLine
	}
	line = strings.ToLower(strings.TrimPrefix(line, `"`))
	if strings.HasPrefix(line, strings.ToLower(nodespec.AgentRoot+`\`)) {
		return
	}
	m.foreign = true
	m.addOperation(StopService{Service: nodespec.ServiceAgent}, "the agent of the legacy operator would revert the changes")
}

// killReplaced kills processes of programs that a link replaces and that no service stops: container shims.
func (m *planner) killReplaced() {
	ofServices := map[int]bool{}
	for _, service := range m.facts.Services {
		ofServices[service.PID] = true
	}
	for _, link := range m.links {
		if fact, there := m.facts.Files[link.Path]; !there || fact.LinkTarget != "" {
			continue
		}
		for _, process := range m.facts.Processes {
			if nodespec.IsSamePath(process.Path, link.Path) && !ofServices[process.PID] {
				m.addStep(Step{Operation: KillProcess{Process: process}, Reason: "its program " + link.Path + " is replaced",
					DisruptsPods: true})
			}
		}
	}
}

// removeLegacy removes objects of a legacy operator that the node does not use, once all services of the node run.
func (m *planner) removeLegacy(r *restorePlanner, path string) {
	used := func(other string) bool { return nodespec.IsWithin(other, path) }
	switch {
	case len(m.listUnmetNeeds()) > 0, hasPath(legacyLogs, path), slices.ContainsFunc(specPaths(m.spec), used):
		return
	case slices.ContainsFunc(r.steps, func(step Step) bool {
		folder, ok := step.Operation.(RemovePath)
		return ok && nodespec.IsWithin(path, folder.Path)
	}):
		return // removed with its directory
	case slices.ContainsFunc(m.facts.Processes, func(process host.Process) bool { return used(process.Path) }):
		return // ends through a step of this plan, or independently
	}
	before := r.why
	r.why = "it belongs to the legacy operator, and the node does not use it"
	r.restorePath(path)
	r.why = before
}
