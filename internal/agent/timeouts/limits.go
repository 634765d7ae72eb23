// Package timeouts has how long the agent waits and how often it looks, and waits on a clock. What happens when a time is
// over is up to the caller; no limit of what a user can notice stands anywhere else but beside the one thing that it
// limits.
package timeouts

import (
	"time"
)

// How long the agent waits, and how often it looks. These are what a user may rely on for the time until a fault shows.
const (
	// LimitLock is how long a verb waits for the agent's service to finish a repair.
	LimitLock = 30 * time.Second
	// LimitFeature is for Windows to enable or disable an optional feature.
	LimitFeature = 30 * time.Minute
	// LimitFeatureStop is for Windows to stop that when it was told to: half a change of its component store is worse
	// than a late answer. Then the verb ends all the same, because its lock keeps all others from the host.
	LimitFeatureStop = 10 * time.Minute
	// LimitServiceStart is for a service, and what it depends on, to run.
	LimitServiceStart = 2 * time.Minute
	// LimitServiceStop is for a service, and what depends on it, to stop.
	LimitServiceStop = 2 * time.Minute
	// LimitPod is for the container runtime to end one pod, and to list all of them.
	LimitPod = time.Minute
	// LimitPods is for all pods together; the removal goes on without the rest.
	LimitPods = 10 * time.Minute
	// LimitLayer is for Windows to unmount and delete the layer of an image or container.
	LimitLayer = time.Minute
	// LimitLayers is for all layers together; the removal goes on without the rest.
	LimitLayers = 10 * time.Minute
	// LimitNetwork is for hybrid-overlay-node to make the HNS network.
	LimitNetwork = 5 * time.Minute
	// LimitAttach is for HNS to attach kube-proxy's endpoint to the host, and for the host to show that.
	LimitAttach = 5 * time.Second
	// LimitAntivirus is for Microsoft Defender Antivirus to tell or change its exclusions.
	LimitAntivirus = time.Minute

	// LimitFacts is for Windows to tell all that a plan is made of. Its parts may hang: the Host Networking Service,
	// DISM, the firewall.
	LimitFacts = 10 * time.Minute
	// LimitAPIServer is for the API server's name to be resolved and a TCP connection to be made, together.
	LimitAPIServer = 5 * time.Second
	// LimitStep is for each step that has no limit of its own and moves no files, for the same reason.
	LimitStep = 10 * time.Minute
	// LimitCheck is for one attempt of a check of the node.
	LimitCheck = 30 * time.Second
	// LimitCollect is for one part that collect reports.
	LimitCollect = 5 * time.Second

	// LimitCondition is for one attempt to write the Node's condition WindowsConfiguration.
	LimitCondition = 10 * time.Second

	// PollInterval is how often the agent looks at what it waits for.
	PollInterval = 250 * time.Millisecond
	// ProgressInterval is the least time between two lines of progress of one step.
	ProgressInterval = time.Second
	// HeartbeatInterval is the longest time without a line while a step waits.
	HeartbeatInterval = 15 * time.Second

	// DriftPoll is how often the service looks whether the node's services or files have changed.
	DriftPoll = 5 * time.Second
	// DriftCheck is how often it compares everything with the spec, also without a change.
	DriftCheck = time.Minute
	// AntivirusCheck is how often it asks Microsoft Defender Antivirus for its exclusions.
	AntivirusCheck = 15 * time.Minute
	// FeatureCheck is how often it asks DISM for a Windows feature, which starts Windows' servicing each time. It asks
	// sooner when Windows begins to wait for a restart.
	FeatureCheck = 15 * time.Minute
	// BootGrace is how long after a boot the service leaves the start of services to Windows that Windows is to start,
	// unless they run before.
	BootGrace = 2 * time.Minute
	// NetworkGrace is how long the HNS network may be away while the kubelet runs before the service takes the CNI
	// plugin's configuration away.
	NetworkGrace = 30 * time.Second
	// LogCheck is how often the service looks whether a log of another program is to be rotated.
	LogCheck = time.Minute
	// StoreCheck is how often it deletes former certificates of the node's programs.
	StoreCheck = time.Hour
	// PaceReset is how long after a repair the same repair is done at once again.
	PaceReset = 5 * time.Minute
	// EventRepeat is how long the service writes no second event of the same.
	EventRepeat = time.Hour
	// ConditionInterval is the time between two writes of the Node's condition WindowsConfiguration when it does not
	// change, and the longest wait before a change is written. The kubelet writes its own conditions as often.
	ConditionInterval = 5 * time.Minute
	// ConditionPace is the least time between two changes of the condition; it doubles up to ConditionInterval while
	// they follow each other.
	ConditionPace = time.Minute
	// ConditionRetry is the wait after the first failed attempt to write the condition; it doubles up to
	// ConditionInterval.
	ConditionRetry = 10 * time.Second
)
