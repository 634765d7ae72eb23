// Package timeouts defines the timeouts and intervals of the agent, and waits on a clock. Callers handle
// timeouts. All timeouts that users can notice are here, except for timeouts of a single function, which are
// defined beside that function.
package timeouts

import (
	"time"
)

// Timeouts and intervals of the agent. Users may rely on them for the time until a fault is reported.
const (
	// LimitLock is the maximum time that a command waits for a repair by the agent's service.
	LimitLock = 30 * time.Second
	// LimitFeature is the timeout for Windows to enable or disable an optional feature.
	LimitFeature = 30 * time.Minute
	// LimitFeatureStop is the timeout for Windows to cancel such a change: half a change of the component store
	// is worse than a late response. Afterwards the command ends anyway, because its lock blocks all other
	// commands.
	LimitFeatureStop = 10 * time.Minute
	// LimitServiceStart is the timeout for the start of a service and its dependencies.
	LimitServiceStart = 2 * time.Minute
	// LimitServiceStop is the timeout for the stop of a service and its dependents.
	LimitServiceStop = 2 * time.Minute
	// LimitPod is the timeout for the container runtime to stop one pod, and to list all pods.
	LimitPod = time.Minute
	// LimitPods is the timeout for all pods together; the removal continues without the rest.
	LimitPods = 10 * time.Minute
	// LimitLayer is the timeout for Windows to unmount and delete the layer of an image or container.
	LimitLayer = time.Minute
	// LimitLayers is the timeout for all layers together; the removal continues without the rest.
	LimitLayers = 10 * time.Minute
	// LimitNetwork is the timeout for hybrid-overlay-node to create the HNS network.
	LimitNetwork = 5 * time.Minute
	// LimitAttach is the timeout for HNS to attach kube-proxy's endpoint to the host, and for the host to show
	// the attachment.
	LimitAttach = 5 * time.Second
	// LimitAntivirus is the timeout for Microsoft Defender Antivirus to return or change its exclusions.
	LimitAntivirus = time.Minute

	// LimitFacts is the timeout for all facts of a plan. Some of their sources may hang: the Host Networking
	// Service, DISM, the firewall.
	LimitFacts = 10 * time.Minute
	// LimitAPIServer is the timeout for resolving the API server's name and connecting to it, together.
	LimitAPIServer = 5 * time.Second
	// LimitStep is the timeout for each step that has no other timeout and moves no files, because such a step
	// may hang too.
	LimitStep = 10 * time.Minute
	// LimitCheck is the timeout for one attempt of a check of the node.
	LimitCheck = 30 * time.Second
	// LimitCollect is the timeout for one part of a collect report.
	LimitCollect = 5 * time.Second

	// LimitCondition is the timeout for one attempt to write the Node's condition WindowsConfiguration.
	LimitCondition = 10 * time.Second

	// PollInterval is the interval between two polls of an awaited state.
	PollInterval = 250 * time.Millisecond
	// ProgressInterval is the minimum time between two progress lines of one step.
	ProgressInterval = time.Second
	// HeartbeatInterval is the maximum time without a line while a step waits.
	HeartbeatInterval = 15 * time.Second

	// DriftPoll is the interval between two polls of the node's services and files for changes.
	DriftPoll = 5 * time.Second
	// DriftCheck is the interval between two comparisons of everything with the spec without a change.
	DriftCheck = time.Minute
	// AntivirusCheck is the interval between two queries of the exclusions of Microsoft Defender Antivirus.
	AntivirusCheck = 15 * time.Minute
	// FeatureCheck is the interval between two DISM queries of a Windows feature, which start Windows servicing
	// each time. The query is repeated earlier if a restart of Windows becomes pending.
	FeatureCheck = 15 * time.Minute
	// BootGrace is the time after a boot during which the service leaves the start of automatic services to
	// Windows. It ends earlier if the services run.
	BootGrace = 2 * time.Minute
	// NetworkGrace is the maximum absence of the HNS network while the kubelet runs before the service removes
	// the configuration of the CNI plugin.
	NetworkGrace = 30 * time.Second
	// LogCheck is the interval between two checks for oversized logs of other programs.
	LogCheck = time.Minute
	// StoreCheck is the interval between two deletions of former certificates of the node's programs.
	StoreCheck = time.Hour
	// PaceReset is the time after a repair until the same repair runs again without delay.
	PaceReset = 5 * time.Minute
	// EventRepeat is the minimum time between two equal events.
	EventRepeat = time.Hour
	// ConditionInterval is the interval between two writes of an unchanged Node condition WindowsConfiguration,
	// and the maximum delay of a change. The kubelet writes its own conditions equally often.
	ConditionInterval = 5 * time.Minute
	// ConditionPace is the minimum time between two changes of the condition; it doubles up to
	// ConditionInterval while changes follow each other.
	ConditionPace = time.Minute
	// ConditionRetry is the delay after the first failed attempt to write the condition; it doubles up to
	// ConditionInterval.
	ConditionRetry = 10 * time.Second
)
