package agent

import "time"

// How long the agent waits, and how often it looks. These are what a user may rely on for the time until a fault shows.
const (
	// LimitLock is how long a verb waits for the agent's service to finish a repair.
	LimitLock = 30 * time.Second
	// LimitFeature is for Windows to enable or disable an optional feature.
	LimitFeature = 30 * time.Minute
	// LimitServiceStart is for a service, and what it depends on, to run.
	LimitServiceStart = 2 * time.Minute
	// LimitServiceStop is for a service, and what depends on it, to stop.
	LimitServiceStop = 2 * time.Minute
	// LimitNetwork is for hybrid-overlay-node to make the HNS network.
	LimitNetwork = 5 * time.Minute

	// PollInterval is how often the agent looks at what it waits for.
	PollInterval = 250 * time.Millisecond
	// ProgressInterval is the least time between two lines of progress of one step.
	ProgressInterval = time.Second
	// HeartbeatInterval is the longest time without a line while a step waits.
	HeartbeatInterval = 15 * time.Second

	// DriftPoll is how often the service looks at the states of the node's services.
	DriftPoll = 5 * time.Second
	// DriftCheck is how often it compares everything with the spec.
	DriftCheck = time.Minute
)

// maxRounds ends an apply whose plan does not become empty. A first configuration takes three rounds for each spec.
const maxRounds = 12
