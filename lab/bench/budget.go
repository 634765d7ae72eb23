package bench

import (
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/hostcost"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// Verdict is the outcome of a budget.
type Verdict string

// Verdicts. Only Over fails a run: times depend on the machine.
const (
	Kept        Verdict = "kept"
	Over        Verdict = "OVER"
	Slow        Verdict = "slow"
	NotMeasured Verdict = "not measured"
)

// Line is one budget with its measurement.
type Line struct {
	Subject  string  `json:"subject"`
	What     string  `json:"what"`
	Measured string  `json:"measured"`
	Budget   string  `json:"budget"`
	Verdict  Verdict `json:"verdict"`
}

// Budgets.
const (
	maxConnections  = 2
	maxExecs        = 8
	maxSFTPSessions = 2
	maxReboots      = 1
	maxReads        = 40
	maxWrites       = 15
	// maxWritesAlone is for a host that joins alone: how many nodes there are, perhaps in two steps, and the addresses for
	// Prometheus in a slice and in the Endpoints, are written once for all that join at about the same time.
	maxWritesAlone     = maxWrites + 5
	maxWirePercent     = 25
	maxOwnSeconds      = 3
	maxTransferSeconds = 3
	maxTenSeconds      = 10
	maxFiftySeconds    = 60
	maxAddedSeconds    = 10
	maxPatchPercent    = 10
	maxArrivalSeconds  = 600
	// maxOwnArrivalSeconds is for the last look at a host whose user data is at work, the last one at a host that
	// restarts, and round trips.
	maxOwnArrivalSeconds = 28

	// distant is the round trip at which the time that is added by us has a budget.
	distant = 50 * time.Millisecond
)

// Evaluate compares a result with all budgets.
func Evaluate(r Result) []Line {
	var lines []Line
	lines = append(lines, joinLines(r)...)
	lines = append(lines, requestLines(r)...)
	lines = append(lines, wireLine(r))
	lines = append(lines, patchLines(r)...)
	for _, occasion := range []Occasion{LeftAlone, LookAgain} {
		lines = append(lines, quietLines(r, occasion)...)
	}
	lines = append(lines, restartLines(r)...)
	lines = append(lines, arrivalLines(r)...)
	lines = append(lines, timeLines(r)...)
	return append(lines, fleetLines(r)...)
}

// Failed returns the lines that are over their budget.
func Failed(lines []Line) []Line { return with(lines, Over) }

// with returns the lines of a verdict.
func with(lines []Line, verdict Verdict) []Line {
	var chosen []Line
	for _, line := range lines {
		if line.Verdict == verdict {
			chosen = append(chosen, line)
		}
	}
	return chosen
}

// count judges a number of things.
func count(subject, what string, measured, limit int, known bool) Line {
	line := Line{Subject: subject, What: what, Budget: fmt.Sprintf("≤ %d", limit), Verdict: NotMeasured}
	if limit == 0 {
		line.Budget = "0"
	}
	if known {
		line.Measured, line.Verdict = fmt.Sprint(measured), Kept
		if measured > limit {
			line.Verdict = Over
		}
	}
	return line
}

// duration judges a time.
func duration(subject, what string, seconds, limit float64, known bool) Line {
	line := Line{Subject: subject, What: what, Budget: fmt.Sprintf("< %g s", limit), Verdict: NotMeasured}
	if known {
		line.Measured, line.Verdict = fmt.Sprintf("%.1f s", seconds), Kept
		if seconds >= limit {
			line.Verdict = Slow
		}
	}
	return line
}

func joinLines(r Result) []Line {
	const subject = "first configuration, worst host of all runs"
	costs := make([]hostcost.Cost, len(r.Joins))
	for i, join := range r.Joins {
		costs[i] = join.Worst
	}
	if r.Whole != nil {
		costs = append(costs, r.Whole.Join.Worst)
	}
	cost, known := hostcost.Worst(costs), len(costs) > 0
	return []Line{
		count(subject, "SSH connections", cost.Connections, maxConnections, known),
		count(subject, "execs", cost.Execs, maxExecs, known),
		count(subject, "PowerShell starts", cost.PowerShell, 0, known),
		count(subject, "SFTP sessions", cost.SFTPSessions, maxSFTPSessions, known),
		count(subject, "reboots", cost.Reboots, maxReboots, known),
	}
}

// requestLines judge what a join costs the API server: of one host alone, and of each of many, for which some requests
// are the same.
func requestLines(r Result) (lines []Line) {
	for _, hosts := range []int{1, 10, 50} {
		join, known := r.join(hosts, 0)
		subject := fmt.Sprintf("%d hosts join, for each of them", hosts)
		if hosts == 1 {
			subject = "1 host joins"
		}
		each := func(n int) int { return (n + hosts - 1) / hosts }
		writes := maxWrites
		if hosts == 1 {
			writes = maxWritesAlone
		}
		lines = append(lines, count(subject, "API reads", each(join.Reads), maxReads, known),
			count(subject, "API writes", each(join.Writes), writes, known))
	}
	return lines
}

// wireLine judges all bytes that a host received until it was Ready, not only those of the archive.
func wireLine(r Result) Line {
	line := Line{Subject: "payload, first time", What: "bytes on the wire", Budget: fmt.Sprintf("≤ %d %% of the raw size",
		maxWirePercent), Verdict: NotMeasured}
	if r.Whole == nil {
		return line
	}
	received, raw := r.Whole.Join.Worst.Received, r.Whole.Payload.RawBytes
	line.Measured, line.Verdict = percent(received, raw), Kept
	if received*100 > raw*maxWirePercent {
		line.Verdict = Over
	}
	return line
}

// patchLines judge what a new version of a file costs, where a payload has patches.
func patchLines(r Result) []Line {
	var lines []Line
	for _, patch := range r.Patches {
		line := Line{
			Subject: "another version of " + patch.File, What: "size of its patch",
			Measured: percent(patch.PatchBytes, patch.FileBytes),
			Budget:   fmt.Sprintf("≤ %d %% of the file", maxPatchPercent), Verdict: Kept,
		}
		if patch.PatchBytes*100 > patch.FileBytes*maxPatchPercent {
			line.Verdict = Over
		}
		lines = append(lines, line)
	}
	return lines
}

// quiets returns all of an occasion, together.
func quiets(r Result, occasion Occasion) (cost hostcost.Cost, writes int, known bool) {
	for _, quiet := range r.Quiets {
		if quiet.Occasion == occasion {
			cost, writes, known = hostcost.Sum([]hostcost.Cost{cost, quiet.All}), writes+quiet.Writes, true
		}
	}
	return cost, writes, known
}

func quietLines(r Result, occasion Occasion) []Line {
	cost, writes, known := quiets(r, occasion)
	subject := "nothing to do, " + string(occasion)
	return []Line{
		count(subject, "SSH connections", cost.Connections, 0, known),
		count(subject, "execs", cost.Execs, 0, known),
		count(subject, "process starts on hosts", cost.Processes, 0, known),
		count(subject, "API writes", writes, 0, known),
	}
}

func restartLines(r Result) []Line {
	cost, _, known := quiets(r, Restarted)
	const subject = "operator restart, healthy nodes"
	lines := []Line{
		count(subject, "SSH connections", cost.Connections, 0, known),
		count(subject, "service operations on hosts", cost.Services, 0, known),
	}
	cost, _, known = quiets(r, Upgraded)
	const upgrade = "another version with the same programs"
	return append(lines, count(upgrade, "SSH connections", cost.Connections, 0, known),
		count(upgrade, "service operations on hosts", cost.Services, 0, known))
}

// arrivalLines are of virtual time, which is the same on every machine: who is late is over its budget, and not only
// slow.
func arrivalLines(r Result) []Line {
	const subject = "1 new Machine, 50 ms round trip, 100 Mbit/s"
	var a rig.Arrival
	if r.Arrival != nil {
		a = *r.Arrival
	}
	lines := []Line{
		duration(subject, "port 22 open to Ready", a.Total().Seconds(), maxArrivalSeconds, r.Arrival != nil),
		duration(subject, "of that, the operator's own time", a.Own().Seconds(), maxOwnArrivalSeconds, r.Arrival != nil),
	}
	for i := range lines {
		if lines[i].Verdict == Slow {
			lines[i].Verdict = Over
		}
	}
	return lines
}

func timeLines(r Result) []Line {
	one, hasOne := r.join(1, 0)
	ten, hasTen := r.join(10, 0)
	fifty, hasFifty := r.join(50, 0)
	far, hasFar := r.join(1, distant)
	archive, hasArchive := r.archiveSeconds()
	lines := []Line{
		duration("1 host that costs nothing", "ConfigMap to Ready", one.Seconds, maxOwnSeconds, hasOne),
		duration("10 hosts that cost nothing", "ConfigMap to all Ready", ten.Seconds, maxTenSeconds, hasTen),
		duration("50 hosts that cost nothing", "ConfigMap to all Ready", fifty.Seconds, maxFiftySeconds, hasFifty),
		duration("1 host, 50 ms round trip", "time beyond that without it", far.Seconds-one.Seconds,
			maxAddedSeconds, hasOne && hasFar),
	}
	if hasArchive {
		lines = append(lines, duration("the real payload, 50 ms round trip", "transfer of its archive", archive,
			maxTransferSeconds, true))
	}
	return lines
}

// archiveSeconds is how long the real payload's archive takes to a distant host.
func (r Result) archiveSeconds() (float64, bool) {
	for _, t := range r.Transfers {
		if r.Real && t.RoundTrip == distant {
			return t.ArchiveSeconds, true
		}
	}
	return 0, false
}

// join finds a run by its parameters.
func (r Result) join(hosts int, roundTrip time.Duration) (Join, bool) {
	for _, join := range r.Joins {
		if join.Hosts == hosts && join.RoundTrip == roundTrip {
			return join, true
		}
	}
	return Join{}, false
}
