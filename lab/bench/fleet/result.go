// Package fleet measures a fleet: a number of simulated hosts at once, with the operator in a process of its own, so that
// its memory and its processor time are its own as well. What happens to the fleet, one occasion after the other, is
// counted in the same way: time, processor time of each program, memory, requests to the API server, bytes, and the work
// on hosts.
package fleet

import "time"

// Occasion is something that happens to a fleet.
type Occasion string

// Occasions, in the order in which they happen. Join is always the first.
const (
	// Join is the way from the ConfigMap to all Ready, with an operator that runs already.
	Join Occasion = "join"
	// Idle is a time in which nothing is to be done.
	Idle Occasion = "idle"
	// Restart is another operator in the place of one that was asked to end.
	Restart Occasion = "restart"
	// Setting is a change of a setting of the cluster that disturbs no pod.
	Setting Occasion = "setting"
	// Rotation is another SSH key for all hosts.
	Rotation Occasion = "rotation"
	// SamePrograms is another version of the operator with the same programs for hosts.
	SamePrograms Occasion = "same programs"
	// Upgrade is another version of the operator, with another kubelet and another kube-proxy.
	Upgrade Occasion = "upgrade"
)

// AllOccasions returns all that can be asked for after Join.
func AllOccasions() []Occasion {
	return []Occasion{Idle, Restart, Setting, Rotation, SamePrograms, Upgrade}
}

// Result is what was measured with one fleet.
type Result struct {
	Hosts int `json:"hosts"`
	// PayloadBytes is the size of all files that each host gets.
	PayloadBytes int64 `json:"payloadBytes"`
	// SizePercent is the size of the stand-ins in the payload next to their usual one.
	SizePercent int `json:"sizePercent"`
	// RoundTrip is the distance of the hosts.
	RoundTrip time.Duration `json:"roundTripNanoseconds"`
	// MaxUnavailable is how many nodes an upgrade may disturb at a time.
	MaxUnavailable int     `json:"maxUnavailable"`
	Phases         []Phase `json:"phases"`
}

// Phase returns what was measured on an occasion.
func (r Result) Phase(occasion Occasion) (Phase, bool) {
	for _, phase := range r.Phases {
		if phase.Occasion == occasion {
			return phase, true
		}
	}
	return Phase{}, false
}

// Phase is what an occasion has cost, until the operator had nothing left to do.
type Phase struct {
	Occasion Occasion `json:"occasion"`
	// Seconds is the time until all hosts were as wanted; for Idle how long it was looked at, and for Restart until the
	// last thing that the new operator did.
	Seconds float64 `json:"seconds"`
	// Whole is the time until nothing was left to do, which is what all the rest is of.
	Whole float64 `json:"wholeSeconds"`
	// Arrivals are when hosts were as wanted, in seconds from the beginning, in ascending order.
	Arrivals []float64 `json:"arrivals,omitempty"`
	// TransferSeconds is, of a join, how long the packed programs took to the host to which they took longest.
	TransferSeconds float64 `json:"transferSeconds,omitempty"`
	// CPU has seconds of processor time, by program.
	CPU CPU `json:"cpu"`
	// Memory is the operator's, at the end, unless the operator ran in the lab's own process.
	Memory *Memory `json:"memory,omitempty"`
	// ReconcileTime is within how many seconds 99 of 100 reconciles of instances ended since the operator's start; zero if the
	// operator ran in the lab's own process.
	ReconcileTime float64 `json:"reconcileSeconds,omitempty"`
	// Reads and Writes are the operator's requests to the API server, without leases and watches. Kinds counts them by what they are.
	Reads  int            `json:"apiReads"`
	Writes int            `json:"apiWrites"`
	Kinds  map[string]int `json:"apiKinds"`
	// Worst is the largest cost of any one host, kind by kind; All is the cost of all together.
	Worst Cost `json:"worstHost"`
	All   Cost `json:"allHosts"`
}

// CPU is processor time in seconds.
type CPU struct {
	// Operator is zero where the operator ran in the process of the hosts.
	Operator     float64 `json:"operator"`
	ControlPlane float64 `json:"controlPlane"`
	// Hosts are the simulated hosts, and with them the lab's stand-ins and this measurement.
	Hosts float64 `json:"hosts"`
}

func (c CPU) minus(before CPU) CPU {
	return CPU{Operator: c.Operator - before.Operator, ControlPlane: c.ControlPlane - before.ControlPlane,
		Hosts: c.Hosts - before.Hosts}
}

// Total returns the processor time of all programs together.
func (c CPU) Total() float64 { return c.Operator + c.ControlPlane + c.Hosts }

// Memory is what the operator's process has.
type Memory struct {
	// Peak is the most that it had in memory since it was started, and Resident what it has now, in bytes.
	Peak     int64 `json:"peakBytes"`
	Resident int64 `json:"residentBytes"`
}

// Reached returns after how many seconds so many hosts were as wanted.
func (p Phase) Reached(hosts int) (seconds float64, known bool) {
	if hosts < 1 || hosts > len(p.Arrivals) {
		return 0, false
	}
	return p.Arrivals[hosts-1], true
}
