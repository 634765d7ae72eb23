// Package timeouts defines the timeouts and intervals of the agent, and waits on a clock. Callers handle
// timeouts. All timeouts that users can notice are here, except for timeouts of a single function, which are
// defined beside that function.
package timeouts

import (
	"time"
)

// Timeouts and intervals of the agent. Users may rely on them for the time until a fault is reported.
const (
	// LockTimeout is the maximum time that a command waits for a repair by the agent's service.
	LockTimeout = 30 * time.Second
	// FeatureTimeout is the timeout for Windows to enable or disable an optional feature.
	FeatureTimeout = 30 * time.Minute
	// FeatureCancelTimeout is the timeout for Windows to cancel such a change: half a change of the component store
	// is worse than a late response. Afterwards the command ends anyway, because its lock blocks all other
	// commands.
	FeatureCancelTimeout = 10 * time.Minute
	// ServiceStartTimeout is the timeout for the start of a service and its dependencies.
	ServiceStartTimeout = 2 * time.Minute
	// ServiceStopTimeout is the timeout for the stop of a service and its dependents.
	ServiceStopTimeout = 2 * time.Minute
	// PodTimeout is the timeout for the container runtime to stop one pod, and to list all pods.
	PodTimeout = time.Minute
	// AllPodsTimeout is the timeout for all pods together; the removal continues without the rest.
	AllPodsTimeout = 10 * time.Minute
	// LayerTimeout is the timeout for Windows to unmount and delete the layer of an image or container.
	LayerTimeout = time.Minute
	// AllLayersTimeout is the timeout for all layers together; the removal continues without the rest.
	AllLayersTimeout = 10 * time.Minute
	// NetworkTimeout is the timeout for hybrid-overlay-node to create the HNS network.
	NetworkTimeout = 5 * time.Minute
	// AttachTimeout is the timeout for HNS to attach kube-proxy's endpoint to the host, and for the host to show
	// the attachment.
	AttachTimeout = 5 * time.Second
	// AntivirusTimeout is the timeout for Microsoft Defender Antivirus to return or change its exclusions.
	AntivirusTimeout = time.Minute

	// FactsTimeout is the timeout for all facts of a plan. Some of their sources may hang: the Host Networking
	// Service, DISM, the firewall.
	FactsTimeout = 10 * time.Minute
	// APIServerTimeout is the timeout for resolving the API server's name and connecting to it, together.
	APIServerTimeout = 5 * time.Second
	// StepTimeout is the timeout for each step that has no other timeout and moves no files, because such a step
	// may hang too.
	StepTimeout = 10 * time.Minute
	// CheckTimeout is the timeout for one attempt of a check of the node.
	CheckTimeout = 30 * time.Second
	// CollectTimeout is the timeout for one part of a collect report.
	CollectTimeout = 5 * time.Second

	// ConditionTimeout is the timeout for one attempt to write the Node's condition WindowsConfiguration.
	ConditionTimeout = 10 * time.Second

	// PollInterval is the interval between two polls of an awaited state.
	PollInterval = 250 * time.Millisecond
	// ProgressInterval is the minimum time between two progress lines of one step.
	ProgressInterval = time.Second
	// HeartbeatInterval is the maximum time without a line while a step waits.
	HeartbeatInterval = 15 * time.Second

	// DriftPollInterval is the interval between two polls of the node's services and files for changes.
	DriftPollInterval = 5 * time.Second
	// DriftCheckInterval is the interval between two comparisons of everything with the spec without a change.
	DriftCheckInterval = time.Minute
	// AntivirusCacheTTL is the validity of cached exclusions of Microsoft Defender Antivirus.
	AntivirusCacheTTL = 15 * time.Minute
	// FeatureCacheTTL is the validity of the cached state of a Windows feature. Each DISM query starts Windows
	// servicing. The query is repeated earlier if a restart of Windows becomes pending.
	FeatureCacheTTL = 15 * time.Minute
	// BootGracePeriod is the time after a boot during which the service leaves the start of automatic services to
	// Windows. It ends earlier if the services run.
	BootGracePeriod = 2 * time.Minute
	// NetworkGracePeriod is the maximum absence of the HNS network while the kubelet runs before the service removes
	// the configuration of the CNI plugin.
	NetworkGracePeriod = 30 * time.Second
	// LogCheckInterval is the interval between two checks for oversized logs of other programs.
	LogCheckInterval = time.Minute
	// StoreCheckInterval is the interval between two deletions of former certificates of the node's programs.
	StoreCheckInterval = time.Hour
	// BackoffResetDelay is the time after a repair until the same repair runs again without delay.
	BackoffResetDelay = 5 * time.Minute
	// EventRepeatInterval is the minimum time between two equal events.
	EventRepeatInterval = time.Hour
	// ConditionInterval is the interval between two writes of an unchanged Node condition WindowsConfiguration,
	// and the maximum delay of a change. The kubelet writes its own conditions equally often.
	ConditionInterval = 5 * time.Minute
	// MinConditionInterval is the minimum time between two changes of the condition; it doubles up to
	// ConditionInterval while changes follow each other.
	MinConditionInterval = time.Minute
	// ConditionRetryDelay is the delay after the first failed attempt to write the condition; it doubles up to
	// ConditionInterval.
	ConditionRetryDelay = 10 * time.Second
)
