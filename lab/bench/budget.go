package bench

import (
	"fmt"
	"math"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// budget is the limit of one figure.
type budget struct {
	subject, what string
	limit         float64
	unit          string
	figure        figure
	// varies reports whether the figure depends on the machine, as all times do. Such a figure only causes a
	// warning.
	varies bool
}

// figure returns a figure of a run, or NaN if it was not measured.
type figure func(Result) float64

// value returns a figure of a scenario, or NaN if it was not measured.
type value func(fleet.Phase) float64

const (
	seconds    = "s"
	mebibytes  = "MiB"
	maxReads   = 40
	maxWrites  = 15
	maxGrowth  = 1.2 // of the cost of a host among a thousand, compared with one among a hundred
	mib        = 1 << 20
	mediumPart = 200 // hosts of a larger fleet
	// maxWritesAlone is the limit for a host that joins alone: the number of nodes, perhaps in two steps, and
	// the addresses for Prometheus are written once for all hosts that join at about the same time.
	maxWritesAlone = maxWrites + 4
)

// Values of a scenario: the work on the worst host, kind by kind, or on all hosts together.
var (
	connections   value = func(p fleet.Phase) float64 { return float64(p.Worst.Connections) }
	execs         value = func(p fleet.Phase) float64 { return float64(p.Worst.Execs) }
	powerShell    value = func(p fleet.Phase) float64 { return float64(p.Worst.PowerShell) }
	sftpSessions  value = func(p fleet.Phase) float64 { return float64(p.Worst.SFTPSessions) }
	reboots       value = func(p fleet.Phase) float64 { return float64(p.Worst.Reboots) }
	processes     value = func(p fleet.Phase) float64 { return float64(p.All.Processes) }
	services      value = func(p fleet.Phase) float64 { return float64(p.All.Services) }
	received      value = func(p fleet.Phase) float64 { return float64(p.Worst.Received) }
	reads         value = func(p fleet.Phase) float64 { return float64(p.Reads) }
	writes        value = func(p fleet.Phase) float64 { return float64(p.Writes) }
	requests      value = func(p fleet.Phase) float64 { return float64(p.Reads + p.Writes) }
	elapsed       value = func(p fleet.Phase) float64 { return p.Seconds }
	operatorCPU   value = func(p fleet.Phase) float64 { return p.CPU.Operator }
	controlCPU    value = func(p fleet.Phase) float64 { return p.CPU.ControlPlane }
	allCPU        value = func(p fleet.Phase) float64 { return p.CPU.Total() }
	idlePercent   value = func(p fleet.Phase) float64 { return 100 * p.CPU.Operator / p.Seconds }
	peakMemory    value = func(p fleet.Phase) float64 { return memoryMiB(p, func(m fleet.Memory) int64 { return m.Peak }) }
	currentMemory value = func(p fleet.Phase) float64 { return memoryMiB(p, func(m fleet.Memory) int64 { return m.Resident }) }
)

// transferSeconds returns NaN if no host was observed to receive packed programs.
func transferSeconds(p fleet.Phase) float64 {
	if p.TransferSeconds == 0 {
		return math.NaN()
	}
	return p.TransferSeconds
}

func memoryMiB(p fleet.Phase, get func(fleet.Memory) int64) float64 {
	if p.Memory == nil {
		return math.NaN()
	}
	return float64(get(*p.Memory)) / mib
}

// secondsUntilReached returns the time at which the number of hosts reached the desired state.
func secondsUntilReached(hosts int) value {
	return func(p fleet.Phase) float64 {
		if at, known := p.Reached(hosts); known {
			return at
		}
		return math.NaN()
	}
}

// allBudgets returns all budgets.
func allBudgets() (all []budget) {
	for _, some := range [][]budget{joinBudgets(), requestBudgets(), timeBudgets(), growthBudgets(), quietBudgets(), upgradeBudgets()} {
		all = append(all, some...)
	}
	return all
}

func joinBudgets() []budget {
	const first = "first configuration, worst host of all fleets"
	return []budget{
		{subject: first, what: "SSH connections", limit: 2, figure: worstFigure(connections, fleet.Join)},
		{subject: first, what: "execs", limit: 8, figure: worstFigure(execs, fleet.Join)},
		{subject: first, what: "PowerShell starts", limit: 0, figure: worstFigure(powerShell, fleet.Join)},
		{subject: first, what: "SFTP sessions", limit: 2, figure: worstFigure(sftpSessions, fleet.Join)},
		{subject: first, what: "reboots", limit: 1, figure: worstFigure(reboots, fleet.Join)},
		{subject: "payload, first time", what: "bytes on the wire", limit: 25, unit: "% of the raw size", figure: wirePercent},
		{subject: "1 host, programs of the real size", what: "operator's maximum memory", limit: 100, unit: mebibytes,
			figure: sizedPhaseFigure(realSize, 0, 1, fleet.Join, peakMemory)},
		{subject: "fleets of all sizes, all scenarios", what: "operator's maximum memory", limit: 256, unit: mebibytes,
			figure: worstFigure(peakMemory, fleet.Join, fleet.AllScenarios()...)},
	}
}

// requestBudgets limit the requests to the API server for each host that joins.
func requestBudgets() (all []budget) {
	for _, hosts := range []int{1, 10, 50, largeFleet} {
		subject, maxWritesEach := fmt.Sprintf("%d hosts join, for each host", hosts), float64(maxWrites)
		if hosts == 1 {
			subject, maxWritesEach = "1 host joins", maxWritesAlone
		}
		all = append(all,
			budget{subject: subject, what: "API reads", limit: maxReads, figure: perHostFigure(hosts, fleet.Join, reads)},
			budget{subject: subject, what: "API writes", limit: maxWritesEach, figure: perHostFigure(hosts, fleet.Join, writes)})
	}
	return all
}

func timeBudgets() []budget {
	return []budget{
		{subject: "1 simulated host", what: "ConfigMap to Ready", limit: 3, unit: seconds, figure: phaseFigure(1, fleet.Join, elapsed)},
		{subject: "10 simulated hosts", what: "ConfigMap to all Ready", limit: 10, unit: seconds, figure: phaseFigure(10, fleet.Join, elapsed)},
		{subject: "50 simulated hosts", what: "ConfigMap to all Ready", limit: 60, unit: seconds, figure: phaseFigure(50, fleet.Join, elapsed)},
		{subject: "1 host, programs of the real size", what: "ConfigMap to Ready", limit: 5, unit: seconds, figure: sizedPhaseFigure(realSize, 0, 1, fleet.Join, elapsed)},
		{subject: "1 host, programs of the real size, 50 ms round trip", what: "additional time", limit: 10, unit: seconds, figure: addedSeconds},
		{subject: "1 host, programs of the real size, 50 ms round trip", what: "transfer of the packed programs", limit: 3, unit: seconds,
			figure: sizedPhaseFigure(realSize, distant, 1, fleet.Join, transferSeconds)},
		{subject: "200 hosts of a larger fleet", what: "ConfigMap to 200 Ready", limit: 100, unit: seconds, figure: phaseFigure(mediumFleet, fleet.Join, secondsUntilReached(mediumPart))},
		{subject: "1,000 hosts at once", what: "ConfigMap to the first Ready", limit: 15, unit: seconds, figure: phaseFigure(largeFleet, fleet.Join, secondsUntilReached(1))},
		{subject: "1,000 hosts at once", what: "ConfigMap to all Ready", limit: 600, unit: seconds, figure: phaseFigure(largeFleet, fleet.Join, elapsed)},
	}
}

// growthBudgets compare the cost of a host in the large fleet with its cost in the small one.
func growthBudgets() []budget {
	const subject = "a host in 1,000, compared with a host in 100"
	return []budget{
		{subject: subject, what: "API requests", limit: maxGrowth, figure: joinCostGrowth(requests)},
		{subject: subject, what: "operator's processor time", limit: maxGrowth, figure: joinCostGrowth(operatorCPU), varies: true},
		{subject: subject, what: "control plane's processor time", limit: maxGrowth, figure: joinCostGrowth(controlCPU), varies: true},
		{subject: subject, what: "processor time of all programs", limit: maxGrowth, figure: joinCostGrowth(allCPU), varies: true},
	}
}

// quietBudgets limit the activity of an operator with little or no work.
func quietBudgets() []budget {
	const (
		idle, known   = "idle, all fleets", "1,000 instances, idle"
		restart, many = "operator restart, healthy nodes", "operator restart, 1,000 healthy nodes"
		setting       = "a setting that disrupts no pods, 1,000 nodes"
	)
	return []budget{
		{subject: idle, what: "SSH connections", limit: 0, figure: worstFigure(connections, fleet.Idle)},
		{subject: idle, what: "execs", limit: 0, figure: worstFigure(execs, fleet.Idle)},
		{subject: idle, what: "process starts on hosts", limit: 0, figure: worstFigure(processes, fleet.Idle)},
		{subject: idle, what: "API writes", limit: 0, figure: worstFigure(writes, fleet.Idle)},
		{subject: known, what: "operator's memory", limit: 200, unit: mebibytes, figure: phaseFigure(largeFleet, fleet.Idle, currentMemory)},
		{subject: known, what: "operator's processor time", limit: 1, unit: "% of a core", figure: phaseFigure(largeFleet, fleet.Idle, idlePercent), varies: true},
		{subject: restart, what: "SSH connections", limit: 0, figure: worstFigure(connections, fleet.Restart)},
		{subject: restart, what: "service operations on hosts", limit: 0, figure: worstFigure(services, fleet.Restart)},
		{subject: many, what: "API requests for each instance", limit: 5, figure: perHostFigure(largeFleet, fleet.Restart, requests)},
		{subject: many, what: "start to idle", limit: 20, unit: seconds, figure: phaseFigure(largeFleet, fleet.Restart, elapsed)},
		{subject: setting, what: "SSH connections, worst host", limit: 2, figure: phaseFigure(largeFleet, fleet.Setting, connections)},
		{subject: setting, what: "reboots", limit: 0, figure: phaseFigure(largeFleet, fleet.Setting, reboots)},
		{subject: setting, what: "time for all nodes", limit: 5 * 60, unit: seconds, figure: phaseFigure(largeFleet, fleet.Setting, elapsed)},
	}
}

func upgradeBudgets() []budget {
	const (
		same = "another version with the same programs"
		one  = "upgrade of a node, another kubelet and kube-proxy"
		many = "upgrade of 100 nodes, 10 at a time"
	)
	first := phaseFigure(1, fleet.Join, received)
	patched := func(r Result) float64 { return 100 * phaseFigure(1, fleet.Upgrade, received)(r) / first(r) }
	return []budget{
		{subject: same, what: "SSH connections", limit: 0, figure: worstFigure(connections, fleet.SamePrograms)},
		{subject: same, what: "bytes on the wire", limit: 0, figure: worstFigure(received, fleet.SamePrograms)},
		{subject: same, what: "service operations on hosts", limit: 0, figure: worstFigure(services, fleet.SamePrograms)},
		{subject: same + ", 1 node", what: "start of the operator to the new version", limit: 2, unit: seconds, figure: phaseFigure(1, fleet.SamePrograms, elapsed)},
		{subject: one, what: "SSH connections", limit: 2, figure: phaseFigure(1, fleet.Upgrade, connections)},
		{subject: one, what: "execs", limit: 8, figure: phaseFigure(1, fleet.Upgrade, execs)},
		{subject: one, what: "reboots", limit: 0, figure: phaseFigure(1, fleet.Upgrade, reboots)},
		{subject: one, what: "bytes on the wire", limit: 10, unit: "% of the first transfer", figure: patched},
		{subject: many, what: "SSH connections, worst host", limit: 2, figure: phaseFigure(smallFleet, fleet.Upgrade, connections)},
		{subject: many, what: "execs, worst host", limit: 8, figure: phaseFigure(smallFleet, fleet.Upgrade, execs)},
		{subject: "another version of a file of build/payload, worst file", what: "size of the patch", limit: 10, unit: "% of the file", figure: worstPatch},
	}
}
