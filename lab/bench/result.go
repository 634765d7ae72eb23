// Package bench measures the cost of configuring hosts in the lab, and compares it with the budgets: traffic, process
// starts on hosts, writes to the API server, and the time with hosts that cost nothing themselves.
package bench

import (
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	"github.com/windows-machine-config/wmco/lab/bench/hostcost"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// Result is everything that one run has measured.
type Result struct {
	Machine Machine `json:"machine"`
	// Parts are what was measured, and the machine at its beginning.
	Parts   map[Part]Machine `json:"parts"`
	Payload Payload          `json:"payload"`
	Whole   *Whole           `json:"wholePayload,omitempty"`
	Joins   []Join           `json:"joins"`
	// Arrival is how a new Machine became a node, in virtual time.
	Arrival   *rig.Arrival `json:"arrivalNanoseconds,omitempty"`
	Quiets    []Quiet      `json:"quiets"`
	Transfers []Transfer   `json:"transfers"`
	// Transferred is the payload that the transfers are of, and Real reports whether it is one of real executables.
	Transferred Payload `json:"transferred"`
	Real        bool    `json:"realPayload"`
	Patches     []Patch `json:"patches,omitempty"`
	// HashSpeed is how many bytes the machine hashes with SHA-256 in a second.
	HashSpeed float64 `json:"hashBytesPerSecond"`
	// Fleets are many hosts at once, with the operator in a process of its own.
	Fleets []fleet.Result `json:"fleets,omitempty"`
	Lines  []Line         `json:"budgets"`
}

// Payload describes the payload of each host.
type Payload struct {
	Files int `json:"files"`
	// RawBytes is the size of all files with the agent; ArchiveBytes what the others take packed.
	RawBytes     int64 `json:"rawBytes"`
	AgentBytes   int64 `json:"agentBytes"`
	ArchiveBytes int64 `json:"archiveBytes"`
}

// Whole describes one host with a payload of the real size, next to which the agent is as small as in reality.
type Whole struct {
	Payload Payload `json:"payload"`
	Join    Join    `json:"join"`
}

// Join measures hosts from the ConfigMap to Ready.
type Join struct {
	Hosts     int           `json:"hosts"`
	RoundTrip time.Duration `json:"roundTripNanoseconds"`
	Seconds   float64       `json:"seconds"`
	// Worst is the largest cost of any one host, kind by kind; All is the cost of all together.
	Worst hostcost.Cost `json:"worstHost"`
	All   hostcost.Cost `json:"allHosts"`
	// Steps are those that agents have done on all hosts.
	Steps int `json:"steps"`
	// Reads and Writes are the operator's requests to the API server, without leases and watches.
	Reads  int `json:"apiReads"`
	Writes int `json:"apiWrites"`
}

// Occasion is a reason why an idle operator might do something.
type Occasion string

// Occasions.
const (
	LeftAlone Occasion = "left alone"
	LookAgain Occasion = "made to look again"
	Restarted Occasion = "restarted"
	// Upgraded is another version of the operator with the same programs: nothing on a host is other.
	Upgraded Occasion = "of another version"
)

// Quiet is a time in which no host needed a change.
type Quiet struct {
	Occasion Occasion      `json:"occasion"`
	Hosts    int           `json:"hosts"`
	Seconds  float64       `json:"seconds"`
	All      hostcost.Cost `json:"allHosts"`
	// Reconciles tells how often the operator looked at instances, which proves that it did.
	Reconciles int `json:"reconciles"`
	Writes     int `json:"apiWrites"`
	// WriteKinds counts the writes by what was written: "patch nodes/status".
	WriteKinds map[string]int `json:"apiWriteKinds,omitempty"`
}

// Patch is the cost of a new version of one file for a host with another version.
type Patch struct {
	File       string `json:"file"` // "kubelet.exe"
	FileBytes  int64  `json:"fileBytes"`
	PatchBytes int64  `json:"patchBytes"`
}

// Transfer compares two ways to bring the same payload to one host, from login to the last byte.
type Transfer struct {
	RoundTrip time.Duration `json:"roundTripNanoseconds"`
	// PlainSeconds is the raw files one after the other, 32 KiB for each round trip. In our way the agent comes first, as
	// it is, and then all the others in an archive.
	PlainSeconds   float64 `json:"plainSeconds"`
	AgentSeconds   float64 `json:"agentSeconds"`
	ArchiveSeconds float64 `json:"archiveSeconds"`
	PlainBytes     int64   `json:"plainBytes"` // received by the host
	// PlainPart is the share of the files that plain was measured with, when that would take too long with all; 1 for all.
	// Its seconds and bytes are extrapolated: each packet waits for the one before.
	PlainPart float64 `json:"plainPart"`
	OwnBytes  int64   `json:"ownBytes"`
}

// OwnSeconds is how long our way takes.
func (t Transfer) OwnSeconds() float64 { return t.AgentSeconds + t.ArchiveSeconds }
