// Package fleet measures a fleet: a number of simulated hosts, with the operator in a separate process so that
// memory and processor time are measured separately. All scenarios are measured one after the other by the same
// counters: time, processor time of each program, memory, requests to the API server, bytes, and the work on
// hosts.
package fleet

import "time"

// Scenario is an event in a fleet.
type Scenario string

// Scenarios in order. Join is always the first.
const (
	// Join is the period from the ConfigMap until all hosts are Ready, with a running operator.
	Join Scenario = "join"
	// Idle is a period without any work.
	Idle Scenario = "idle"
	// Restart replaces the operator by another one after a stop request.
	Restart Scenario = "restart"
	// Setting changes a setting of the cluster that disrupts no pod.
	Setting Scenario = "setting"
	// Rotation replaces the SSH key of all hosts.
	Rotation Scenario = "rotation"
	// SamePrograms starts another version of the operator with the same programs for hosts.
	SamePrograms Scenario = "same programs"
	// Upgrade starts another version of the operator, with another kubelet and another kube-proxy.
	Upgrade Scenario = "upgrade"
)

// AllScenarios returns all scenarios that may follow Join.
func AllScenarios() []Scenario {
	return []Scenario{Idle, Restart, Setting, Rotation, SamePrograms, Upgrade}
}

// Result contains the measurements of one fleet.
type Result struct {
	Hosts int `json:"hosts"`
	// PayloadBytes is the total size of the files for each host.
	PayloadBytes int64 `json:"payloadBytes"`
	// SizePercent is the size of the simulated programs in the payload, in percent of their usual size.
	SizePercent int `json:"sizePercent"`
	// RoundTrip is the round-trip time to the hosts.
	RoundTrip time.Duration `json:"roundTripNanoseconds"`
	// MaxUnavailable is the number of nodes that an upgrade may disrupt at a time.
	MaxUnavailable int     `json:"maxUnavailable"`
	Phases         []Phase `json:"phases"`
}

// Phase returns the measurements of a scenario.
func (r Result) Phase(scenario Scenario) (Phase, bool) {
	for _, phase := range r.Phases {
		if phase.Scenario == scenario {
			return phase, true
		}
	}
	return Phase{}, false
}

// Phase contains the cost of a scenario, until the operator had no more work.
type Phase struct {
	Scenario Scenario `json:"scenario"`
	// Seconds is the time until all hosts reached the desired state. For Idle it is the measured period, and
	// for Restart the time until the last action of the new operator.
	Seconds float64 `json:"seconds"`
	// TotalSeconds is the time until no work was left, which all other figures refer to.
	TotalSeconds float64 `json:"totalSeconds"`
	// Arrivals are the times at which hosts reached the desired state, in seconds from the start, in ascending
	// order.
	Arrivals []float64 `json:"arrivals,omitempty"`
	// TransferSeconds is, for a join, the longest transfer of packed programs to a host.
	TransferSeconds float64 `json:"transferSeconds,omitempty"`
	// CPU is the processor time by program, in seconds.
	CPU CPU `json:"cpu"`
	// Memory is the operator's memory at the end, unless the operator ran in the lab's own process.
	Memory *Memory `json:"memory,omitempty"`
	// ReconcileTime is the time in seconds within which 99 of 100 reconciles of instances ended since the
	// operator's start; zero if the operator ran in the lab's own process.
	ReconcileTime float64 `json:"reconcileSeconds,omitempty"`
	// Reads and Writes are the operator's requests to the API server, without leases and watches. Kinds counts
	// the requests by verb and resource.
	Reads  int            `json:"apiReads"`
	Writes int            `json:"apiWrites"`
	Kinds  map[string]int `json:"apiKinds"`
	// Worst is the largest cost of any host, kind by kind; All is the cost of all hosts.
	Worst Cost `json:"worstHost"`
	All   Cost `json:"allHosts"`
}

// CPU is processor time in seconds.
type CPU struct {
	// Operator is zero if the operator ran in the process of the hosts.
	Operator     float64 `json:"operator"`
	ControlPlane float64 `json:"controlPlane"`
	// Hosts is the time of the simulated hosts, including the simulated cluster components and this
	// measurement.
	Hosts float64 `json:"hosts"`
}

func (c CPU) differenceFrom(before CPU) CPU {
	return CPU{Operator: c.Operator - before.Operator, ControlPlane: c.ControlPlane - before.ControlPlane,
		Hosts: c.Hosts - before.Hosts}
}

// Total returns the processor time of all programs.
func (c CPU) Total() float64 { return c.Operator + c.ControlPlane + c.Hosts }

// Memory is the memory of the operator's process.
type Memory struct {
	// Peak is the maximum since the start, and Resident the current value, in bytes.
	Peak     int64 `json:"peakBytes"`
	Resident int64 `json:"residentBytes"`
}

// Reached returns the seconds until a number of hosts reached the desired state.
func (p Phase) Reached(hosts int) (seconds float64, known bool) {
	if hosts < 1 || hosts > len(p.Arrivals) {
		return 0, false
	}
	return p.Arrivals[hosts-1], true
}
