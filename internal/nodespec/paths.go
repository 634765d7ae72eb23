package nodespec

import "strings"

// Places on a host. Users know the ones directly below Root; the others are between operator and agent.
const (
	// Root is the folder of everything that a node runs. Administrators and SYSTEM only.
	Root = `C:\k`
	// LogRoot holds one folder of logs for each service.
	LogRoot = `C:\var\log`
	// ReleasesRoot holds one folder for each release of a component.
	ReleasesRoot = Root + `\releases`
	// ReleaseManifest is the name of the file that is written last into a release's folder: the release is complete when
	// it is there.
	ReleaseManifest = "release.json"
	// IncomingRoot holds payload files, named after their digest, between unpacking and installing.
	IncomingRoot = ReleasesRoot + `\incoming`

	// LandingRoot is where the operator puts an agent over SFTP. It is beside the SSH server's own configuration, in a
	// folder that sshd lets only administrators write to: who can put something there can log in as one anyway. In C:\,
	// and so in C:\k, any user may make folders.
	LandingRoot = `C:\ProgramData\ssh\wicd`
	// FoundPath is there while C:\k, which others than administrators could use, is closed to them and the ledger does not
	// know it yet. It is written before C:\k is closed, where nobody else can.
	FoundPath = LandingRoot + `\found`
	// AgentRoot is the agent's own folder. The agent makes it in its first run, and the operator deletes it after the
	// last.
	AgentRoot = Root + `\wicd`
	// InboxRoot is where the operator puts the input files of verbs.
	InboxRoot = AgentRoot + `\inbox`
	// SpecPath is the NodeSpec that the host is held to.
	SpecPath = AgentRoot + `\spec.json`
	// FallbackPath is the NodeSpec that a rollback goes back to. While it is there, its releases and its agent stay on the
	// host.
	FallbackPath = AgentRoot + `\fallback.json`
	// FallbackAppliedPath is what is known of that NodeSpec: a copy of what AppliedPath held.
	FallbackAppliedPath = AgentRoot + `\fallback-applied.json`
	// AppliedPath tells of the NodeSpec that was last applied to its end.
	AppliedPath = AgentRoot + `\applied.json`
	// LedgerPath is what the host was like before. While it is there, the host is not given back.
	LedgerPath = AgentRoot + `\ledger.json`
	// LockPath is there while a verb changes the host.
	LockPath = AgentRoot + `\lock.json`
	// lastRunPrefix begins the path of what the agent has said when a verb was run last.
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

// DescriptionPrefix begins the description of every service of ours.
const DescriptionPrefix = "OpenShift managed"

// FeatureContainers is the Windows feature that brings containers and the Host Networking Service.
const FeatureContainers = "Containers"

// Since Windows Server 2025 parts of it are features of their own, which it does not bring: the Host Networking
// Service, and the switch extension that pods' networks need.
const (
	featureHNS = "Containers-HNS"
	featureSDN = "Containers-SDN"
)

// The Windows services that those parts come with.
const (
	ServiceHNS = "hns"
	ServiceVFP = "vfpext"
)

// Placeholders in the content of files and in command lines, for what becomes known only on the way (see Need).
const (
	// PlaceholderPodSubnet stands for Network.PodSubnet; what holds it needs NeedPodSubnet.
	PlaceholderPodSubnet = "${POD_SUBNET}"
	// PlaceholderPodRange stands for the first address of the pod subnet that pods may have; what holds it needs
	// NeedPodSubnet.
	PlaceholderPodRange = "${POD_RANGE_START}"
	// PlaceholderSourceVIP stands for the address of kube-proxy's HNS endpoint; what holds it needs NeedSourceVIP.
	PlaceholderSourceVIP = "${SOURCE_VIP}"
)

// shortDigest is how many digits of a digest identify something in a name.
const shortDigest = 12

// AgentPath returns the path of the agent with the given sha256.
func AgentPath(sha256 string) string {
	return AgentRoot + `\` + short(sha256) + `\` + AgentProgram
}

// LandingPath returns the path where the operator puts the agent with the given sha256; the agent then copies itself to
// AgentPath.
func LandingPath(sha256 string) string {
	return LandingRoot + `\` + short(sha256) + `\` + AgentProgram
}

// InboxSpec returns the path for a NodeSpec whose JSON form has the given sha256.
func InboxSpec(sha256 string) string { return InboxRoot + `\spec-` + short(sha256) + ".json" }

// InboxPayload returns the path for a payload archive with the given sha256.
func InboxPayload(sha256 string) string { return InboxRoot + `\payload-` + short(sha256) + ".zst" }

// InboxPatch returns the path for a patch of the agent with the given sha256.
func InboxPatch(sha256 string) string { return InboxRoot + `\patch-` + short(sha256) }

// ReleaseDirectory returns the folder of a release of a component whose files have the given digest together.
func ReleaseDirectory(component, digest string) string {
	return ReleasesRoot + `\` + component + "-" + short(digest)
}

// LastRunPath returns the path of what the agent has said when a verb was run last, for a support case.
func LastRunPath(verb string) string { return lastRunPrefix + verb + ".jsonl" }

// logPaths are the logs, below LogRoot, that are not named after their service. OpenShift's must-gather and log collectors
// request them under these names: openshift/must-gather, collection-scripts/gather_windows_node_logs.
var logPaths = map[string]string{
	ServiceHybridOverlay: `hybrid-overlay\hybrid-overlay.log`,
	ServiceAgent:         `wicd\windows-instance-config-daemon.exe.INFO`,
}

// LogPath returns the path of the log to which a service writes.
func LogPath(service string) string {
	if path, special := logPaths[service]; special {
		return LogRoot + `\` + path
	}
	return LogRoot + `\` + service + `\` + service + ".log"
}

// LogDirectory returns the folder of a service's logs.
func LogDirectory(service string) string {
	path := LogPath(service)
	return path[:strings.LastIndexByte(path, '\\')]
}

// Path returns the path of a file of the release.
func (r Release) Path(file PayloadFile) string { return r.Directory + `\` + file.Name }

// Manifest returns the path of the release's manifest.
func (r Release) Manifest() string { return r.Directory + `\` + ReleaseManifest }

// SamePath reports whether two paths name the same file on Windows, judging by their text alone.
func SamePath(a, b string) bool { return strings.EqualFold(trim(a), trim(b)) }

// Within reports whether a path is the folder or lies below it.
func Within(path, folder string) bool {
	path, folder = trim(path), trim(folder)
	return strings.EqualFold(path, folder) ||
		len(path) > len(folder) && path[len(folder)] == '\\' && strings.EqualFold(path[:len(folder)], folder)
}

func trim(path string) string { return strings.TrimRight(path, `\`) }

func short(digest string) string { return digest[:min(shortDigest, len(digest))] }

// NodesOwn reports whether an entry of a folder that all kinds of programs share belongs to the node's programs,
// although no NodeSpec names it. shared is false for any other folder: everything in it belongs to the node.
func NodesOwn(folder, name string) (own, shared bool) {
	switch {
	case SamePath(folder, LogRoot):
		// The kubelet makes these for the logs of pods.
		return strings.EqualFold(name, "pods") || strings.EqualFold(name, "containers"), true
	case SamePath(folder, `C:\var`), SamePath(folder, `C:\var\lib`):
		return false, true
	}
	return false, false
}
