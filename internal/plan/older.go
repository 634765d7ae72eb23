package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// What operators before version 12 have put on hosts, of both generations: WICD with containerd, and before it WMCB
// with Docker. Nothing else is theirs for certain. Docker itself is not: it came with the image.

// olderFiles are their files, those that hold credentials among them. What the spec names too is replaced and not
// removed.
var olderFiles = below(map[string][]string{
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

// olderFolders are folders of theirs that hold nothing but what they made, parents after children.
var olderFolders = []string{`C:\k\wicd-certs`, `C:\k\tls\certs`, `C:\k\tls`}

// olderLogs are folders of logs. They stay while the host is a node: somebody may want to read them.
var olderLogs = []string{
	`C:\k\log`, nodespec.LogDirectory(nodespec.ServiceHybridOverlay), nodespec.LogDirectory(nodespec.ServiceAgent),
}

// olderCertificates are the hybrid overlay's client certificates with their keys, a file for each time that it asked
// for one.
const olderCertificates = `C:\k\cni\config`

// olderMirrors is where WICD's operator put a folder with a file hosts.toml for each registry that has mirrors.
const olderMirrors = `C:\k\containerd\registries`

// OlderImported lists the certificates that WICD has put into the store of roots, in PEM.
const OlderImported = `C:\k\imported-certs.pem`

// olderSigns are files that no other program has: where one of them lies, an older operator has been.
var olderSigns = []string{`C:\k\windows-instance-config-daemon.exe`, `C:\k\wicd-kubeconfig`, `C:\k\wmcb.exe`}

// olderVariables are the variables that WICD set, and took away where the cluster had no proxy: their values are its
// own.
var olderVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}

func below(names map[string][]string) []string {
	var paths []string
	for _, folder := range slices.Sorted(maps.Keys(names)) {
		for _, name := range names[folder] {
			paths = append(paths, folder+`\`+name)
		}
	}
	return paths
}

// OlderPaths returns all paths where an older operator may have left something, except those of OlderEntries.
func OlderPaths() []string { return slices.Concat(olderFiles, olderFolders, olderLogs) }

// OlderListings returns the folders in which an older operator left entries with names that differ from host to host.
func OlderListings() []string { return []string{olderCertificates, olderMirrors} }

// OlderEntries returns the paths that an older operator, if it was here, has made where one of those folders has an
// entry.
func OlderEntries(folder, name string) []string {
	path := folder + `\` + name
	switch {
	case nodespec.SamePath(folder, olderMirrors):
		return []string{path, path + `\hosts.toml`}
	case nodespec.SamePath(folder, olderCertificates) && isOlderCertificate(name):
		return []string{path}
	}
	return nil
}

func isOlderCertificate(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "ovnkube-client-") && strings.HasSuffix(name, ".pem")
}

// isOlderMirror reports whether a path is one of a registry's mirrors. Unlike the other places this is one of ours too:
// what the node does not use of it goes as all else that no spec names any more.
func isOlderMirror(path string) bool {
	return nodespec.Within(path, olderMirrors) && !nodespec.SamePath(path, olderMirrors)
}

// OlderVariables returns the environment variables that an older operator may have left.
func OlderVariables() []string { return olderVariables }

func isOlder(path string) bool {
	if folder, name, ok := cutName(path); ok && nodespec.SamePath(folder, olderCertificates) && isOlderCertificate(name) {
		return true
	}
	return samePathIn(olderFiles, path) || samePathIn(olderFolders, path) || samePathIn(olderLogs, path)
}

func cutName(path string) (folder, name string, ok bool) {
	i := strings.LastIndexByte(path, '\\')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func samePathIn(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(each string) bool { return nodespec.SamePath(each, path) })
}

// OlderNode describes the parts of a node that an older operator made, as a spec: services by their names alone,
// folders and networks. No host is brought to it; it is for a host that leaves before it was taken over.
func OlderNode() nodespec.NodeSpec {
	spec := nodespec.NodeSpec{
		Identity: nodespec.Identity{Directory: `C:\var\lib\kubelet\pki`},
		Network: nodespec.Network{OwnedNetworks: []string{"BaseOVNKubernetesHybridOverlayNetwork",
			"OVNKubernetesHybridOverlayNetwork"}},
	}
	folders := []string{
		nodespec.Root, `C:\k\cni`, `C:\k\cni\config`, `C:\k\containerd`, olderMirrors, `C:\k\etc`,
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

// RecordOlder returns the ledger of a host that only an older operator has changed, from facts that were gathered for
// OlderNode. ok is false without traces of an older operator.
func RecordOlder(facts Facts) (ledger Ledger, ok bool) {
	spec := OlderNode()
	if !findLeftovers(facts, spec).there {
		return Ledger{}, false
	}
	return Record(facts, spec), true
}

// stopForeignAgent stops an agent that is not ours before anything else: it would undo what is done.
func (m *maker) stopForeignAgent() {
	fact, runs := m.running(nodespec.ServiceAgent)
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
	m.add(StopService{Service: nodespec.ServiceAgent}, "the agent of an older operator would undo the changes")
}

// killReplaced ends what runs from a program that a link takes the place of and that no service stops with it: shims of
// containers.
func (m *maker) killReplaced() {
	ofServices := map[int]bool{}
	for _, service := range m.facts.Services {
		ofServices[service.PID] = true
	}
	for _, link := range m.links {
		if fact, there := m.facts.Files[link.Path]; !there || fact.LinkTarget != "" {
			continue
		}
		for _, process := range m.facts.Processes {
			if nodespec.SamePath(process.Path, link.Path) && !ofServices[process.PID] {
				m.addStep(Step{Operation: KillProcess{Process: process}, Reason: "its program " + link.Path + " is replaced",
					DisturbsPods: true})
			}
		}
	}
}

// removeOlder removes what an older operator has left and the node does not use, once all of the node's own services
// run.
func (m *maker) removeOlder(r *restorer, path string) {
	used := func(other string) bool { return nodespec.Within(other, path) }
	switch {
	case len(m.needs()) > 0, samePathIn(olderLogs, path), slices.ContainsFunc(specPaths(m.spec), used):
		return
	case slices.ContainsFunc(r.steps, func(step Step) bool {
		folder, ok := step.Operation.(RemovePath)
		return ok && nodespec.Within(path, folder.Path)
	}):
		return // it goes with its folder
	case slices.ContainsFunc(m.facts.Processes, func(process host.Process) bool { return used(process.Path) }):
		return // it ends with a step of this plan, or by itself
	}
	before := r.why
	r.why = "an older operator left it, and the node does not use it"
	r.path(path)
	r.why = before
}
