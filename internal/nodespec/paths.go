package nodespec

import "strings"

// Paths on a host. The paths directly below Root are documented for users; the others are internal to operator and
// agent.
const (
	// Root is the directory of all programs and files of a node, for administrators and SYSTEM only.
	Root = `C:\k`
	// LogRoot contains one log directory for each service.
	LogRoot = `C:\var\log`
	// ReleasesRoot contains one directory for each release of a component.
	ReleasesRoot = Root + `\releases`
	// ReleaseManifest is the name of the file that is written last to a release's directory. The release is
	// complete when this file exists.
	ReleaseManifest = "release.json"
	// IncomingRoot holds payload files, named after their digest, between extraction and installation.
	IncomingRoot = ReleasesRoot + `\incoming`

	// LandingRoot is the directory for agents that the operator copies over SFTP. The directory is next to the
	// configuration of the SSH server, where sshd allows only administrators to write: any writer could log in as
	// an administrator anyway. In C:\, and so in C:\k, any user may create directories.
	LandingRoot = `C:\ProgramData\ssh\wicd`
	// FoundPath exists while access to C:\k is restricted but the ledger does not yet record the original
	// access, which included non-administrators. The file is written before the restriction, in a directory that
	// only administrators can write to.
	FoundPath = LandingRoot + `\found`
	// AgentRoot is the agent's own directory. The agent creates it on its first run, and the operator deletes it
	// after the last run.
	AgentRoot = Root + `\wicd`
	// InboxRoot is the directory of input files for agent commands.
	InboxRoot = AgentRoot + `\inbox`
	// SpecPath is the desired NodeSpec of the host.
	SpecPath = AgentRoot + `\spec.json`
	// RollbackTargetPath is the NodeSpec that a rollback returns to. While this file exists, its releases and its agent
	// stay on the host.
	RollbackTargetPath = AgentRoot + `\fallback.json`
	// RollbackAppliedPath describes that NodeSpec: a copy of AppliedPath from the time when
	// the NodeSpec was kept.
	RollbackAppliedPath = AgentRoot + `\fallback-applied.json`
	// AppliedPath describes the last NodeSpec that was applied completely.
	AppliedPath = AgentRoot + `\applied.json`
	// LedgerPath records the original state of the host. The file exists until the host is restored.
	LedgerPath = AgentRoot + `\ledger.json`
	// LockPath exists while an agent command or the agent's service changes or verifies the host.
	LockPath = AgentRoot + `\lock.json`
	// lastRunPrefix is the path prefix of the output of each agent command's last run.
	lastRunPrefix = AgentRoot + `\last-`
	// AgentProgram is the file name of the agent.
	AgentProgram = "wicd.exe"
)

// ServiceAgent is the name of the agent's own Windows service.
const ServiceAgent = "windows-instance-config-daemon"

// ServiceKubelet is the name of the kubelet's Windows service.
const ServiceKubelet = "kubelet"

// ServiceContainerd is the name of the container runtime's Windows service.
const ServiceContainerd = "containerd"

// DescriptionPrefix is the prefix of the description of every service owned by the operator.
const DescriptionPrefix = "OpenShift managed"

// FeatureContainers is the Windows feature with containers and the Host Networking Service.
const FeatureContainers = "Containers"

// Since Windows Server 2025, two parts of FeatureContainers are separate features: the Host Networking Service, and
// the switch extension that pod networks need. FeatureContainers does not include them.
const (
	featureHNS = "Containers-HNS"
	featureSDN = "Containers-SDN"
)

// The Windows services of those features.
const (
	ServiceHNS = "hns"
	ServiceVFP = "vfpext"
)

// Placeholders in files and command lines for inputs that become known only while a host is being configured (see
// Need).
const (
	// PlaceholderPodSubnet represents Network.PodSubnet and requires NeedPodSubnet.
	PlaceholderPodSubnet = "${POD_SUBNET}"
	// PlaceholderPodRange represents the first address of the pod subnet for pods and requires NeedPodSubnet.
	PlaceholderPodRange = "${POD_RANGE_START}"
	// PlaceholderSourceVIP represents the address of kube-proxy's HNS endpoint and requires NeedSourceVIP.
	PlaceholderSourceVIP = "${SOURCE_VIP}"
)

// shortDigest is the number of digest digits in names.
const shortDigest = 12

// AgentPath returns the path of the agent with the given sha256.
func AgentPath(sha256 string) string {
	return AgentRoot + `\` + shortenDigest(sha256) + `\` + AgentProgram
}

// LandingPath returns the path to which the operator copies the agent with the given sha256. The agent then copies
// itself to AgentPath.
func LandingPath(sha256 string) string {
	return LandingRoot + `\` + shortenDigest(sha256) + `\` + AgentProgram
}

// InboxSpec returns the path for a NodeSpec with a JSON form of the given sha256.
func InboxSpec(sha256 string) string { return InboxRoot + `\spec-` + shortenDigest(sha256) + ".json" }

// InboxPayload returns the path for a payload archive with the given sha256.
func InboxPayload(sha256 string) string {
	return InboxRoot + `\payload-` + shortenDigest(sha256) + ".zst"
}

// InboxPatch returns the path for a patch of the agent with the given sha256.
func InboxPatch(sha256 string) string { return InboxRoot + `\patch-` + shortenDigest(sha256) }

// ReleaseDirectory returns the directory of a component release with the given combined digest of its files.
func ReleaseDirectory(component, digest string) string {
	return ReleasesRoot + `\` + component + "-" + shortenDigest(digest)
}

// LastRunPath returns the path of the output of an agent command's last run, for support cases.
func LastRunPath(verb string) string { return lastRunPrefix + verb + ".jsonl" }

// logPaths are the logs, below LogRoot, that are not named after their service. OpenShift's must-gather and log
// collectors request these names: openshift/must-gather, collection-scripts/gather_windows_node_logs.
var logPaths = map[string]string{
	ServiceHybridOverlay: `hybrid-overlay\hybrid-overlay.log`,
	ServiceAgent:         `wicd\windows-instance-config-daemon.exe.INFO`,
}

// LogPath returns the path of a service's log.
func LogPath(service string) string {
	if path, special := logPaths[service]; special {
		return LogRoot + `\` + path
	}
	return LogRoot + `\` + service + `\` + service + ".log"
}

// LogDirectory returns the directory of a service's logs.
func LogDirectory(service string) string {
	path := LogPath(service)
	return path[:strings.LastIndexByte(path, '\\')]
}

// Path returns the path of a file of the release.
func (r Release) Path(file PayloadFile) string { return r.Directory + `\` + file.Name }

// Manifest returns the path of the release's manifest.
func (r Release) Manifest() string { return r.Directory + `\` + ReleaseManifest }

// IsSamePath reports whether two paths name the same file on Windows, based on their text alone.
func IsSamePath(a, b string) bool { return strings.EqualFold(trimBackslash(a), trimBackslash(b)) }

// IsWithin reports whether a path is the directory or lies below the directory.
func IsWithin(path, folder string) bool {
	path, folder = trimBackslash(path), trimBackslash(folder)
	return strings.EqualFold(path, folder) ||
		len(path) > len(folder) && path[len(folder)] == '\\' && strings.EqualFold(path[:len(folder)], folder)
}

func trimBackslash(path string) string { return strings.TrimRight(path, `\`) }

func shortenDigest(digest string) string { return digest[:min(shortDigest, len(digest))] }

// EntryOwnership reports whether an entry of a directory shared with other programs belongs to the node, although no
// NodeSpec lists the entry. shared is false for other directories: all their entries belong to the node.
func EntryOwnership(folder, name string) (own, shared bool) {
	switch {
	case IsSamePath(folder, LogRoot):
		// The kubelet creates these directories for the logs of pods.
		return strings.EqualFold(name, "pods") || strings.EqualFold(name, "containers"), true
	case IsSamePath(folder, `C:\var`), IsSamePath(folder, `C:\var\lib`):
		return false, true
	}
	return false, false
}
