package bench

import (
	"fmt"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

// Budgets of fleets.
const (
	mib = 1 << 20

	maxKnownMemory      = 200 * mib // of an operator that knows a thousand instances
	maxFleetMemory      = 256 * mib // of an operator at whatever it does
	maxAloneMemory      = 100 * mib // of an operator with one host and programs of the real size
	maxIdlePercent      = 1.0       // of a core
	maxRestartSeconds   = 20
	maxRestartRequests  = 5 // for each instance
	maxSettingSeconds   = 5 * 60
	maxSameSeconds      = 2
	maxGrowth           = 1.2 // of what a host costs among a thousand, next to among a hundred
	maxFirstSeconds     = 15
	maxWholeSeconds     = 5
	mediumFleetHosts    = 200
	maxMediumSeconds    = 100
	maxLargeSeconds     = 600
	maxUpgradePercent   = 10 // of the bytes of the first configuration
	realSize, usualSize = labpayload.RealSizePercent, 100
)

// fleetLines judge the fleets.
func fleetLines(r Result) []Line {
	lines := fleetJoinLines(r)
	lines = append(lines, growthLines(r)...)
	lines = append(lines, knownLines(r)...)
	return append(lines, upgradeLines(r)...)
}

func fleetJoinLines(r Result) []Line {
	alone, hasAlone := r.phaseWith(1, realSize, fleet.Join)
	large, hasLarge := r.phase(largeFleetHosts, fleet.Join)
	first, _ := large.Reached(1)
	all, _ := large.Reached(largeFleetHosts)
	const whole, thousand = "1 host, programs of the real size", "1,000 hosts at once"
	lines := []Line{
		duration(whole, "ConfigMap to Ready", alone.Seconds, maxWholeSeconds, hasAlone),
		memory(whole, "operator's memory at most", peakOf(alone), maxAloneMemory, hasAlone && alone.Memory != nil),
	}
	medium, hasMedium := r.mediumSeconds()
	lines = append(lines, duration("200 hosts of a larger fleet", "ConfigMap to 200 Ready", medium, maxMediumSeconds, hasMedium),
		duration(thousand, "ConfigMap to the first Ready", first, maxFirstSeconds, hasLarge),
		duration(thousand, "ConfigMap to all Ready", all, maxLargeSeconds, hasLarge))
	peak, known := r.peakMemory()
	return append(lines, memory("fleets of all sizes, whatever happens", "operator's memory at most", peak, maxFleetMemory, known))
}

// mediumSeconds is when 200 hosts were Ready in the smallest fleet that has as many: others join at the same time.
func (r Result) mediumSeconds() (seconds float64, known bool) {
	hosts := 0
	for _, each := range r.Fleets {
		phase, _ := each.Phase(fleet.Join)
		if at, reached := phase.Reached(mediumFleetHosts); reached && (hosts == 0 || each.Hosts < hosts) {
			hosts, seconds, known = each.Hosts, at, true
		}
	}
	return seconds, known
}

func peakOf(p fleet.Phase) int64 {
	if p.Memory == nil {
		return 0
	}
	return p.Memory.Peak
}

// growthLines compare what one host costs in a large fleet with what it costs in a small one, and judge the requests.
func growthLines(r Result) []Line {
	small, hasSmall := r.phase(smallFleetHosts, fleet.Join)
	large, hasLarge := r.phase(largeFleetHosts, fleet.Join)
	known := hasSmall && hasLarge
	const subject = "a host among 1,000, next to one among 100"
	ratio := func(what string, cost func(fleet.Phase) float64) Line {
		few, many := cost(small)/smallFleetHosts, cost(large)/largeFleetHosts
		return limited(subject, what, many/few, maxGrowth, "%.2f", "", known && few > 0)
	}
	requests := ratio("API requests", func(p fleet.Phase) float64 { return float64(p.Reads + p.Writes) })
	lines := []Line{requests,
		slow(ratio("operator's processor time", func(p fleet.Phase) float64 { return p.CPU.Operator })),
		slow(ratio("control plane's processor time", func(p fleet.Phase) float64 { return p.CPU.ControlPlane })),
		slow(ratio("processor time of all programs", func(p fleet.Phase) float64 { return p.CPU.Total() })),
	}
	const thousand = "1,000 hosts join, for each of them"
	each := func(n int) int { return (n + largeFleetHosts - 1) / largeFleetHosts }
	return append(lines, count(thousand, "API reads", each(large.Reads), maxReads, hasLarge),
		count(thousand, "API writes", each(large.Writes), maxWrites, hasLarge))
}

// knownLines judge what an operator costs that has nothing or little to do for a thousand nodes.
func knownLines(r Result) []Line {
	idle, hasIdle := r.phase(largeFleetHosts, fleet.Idle)
	restart, hasRestart := r.phase(largeFleetHosts, fleet.Restart)
	setting, hasSetting := r.phase(largeFleetHosts, fleet.Setting)
	const known, restarted, set = "1,000 instances known, nothing to do", "operator restart, 1,000 healthy nodes", "a setting that disturbs nobody, 1,000 nodes"
	resident, percent := int64(0), 0.0
	if idle.Memory != nil {
		resident = idle.Memory.Resident
	}
	if idle.Seconds > 0 {
		percent = 100 * idle.CPU.Operator / idle.Seconds
	}
	perInstance := float64(restart.Reads+restart.Writes) / largeFleetHosts
	return []Line{
		memory(known, "operator's memory", resident, maxKnownMemory, hasIdle && idle.Memory != nil),
		slow(limited(known, "operator's processor time", percent, maxIdlePercent, "%.2f", " % of a core", hasIdle)),
		count(known, "API writes", idle.Writes, 0, hasIdle),
		count(known, "SSH connections", idle.All.Connections, 0, hasIdle),
		count(restarted, "SSH connections", restart.All.Connections, 0, hasRestart),
		limited(restarted, "API requests for each instance", perInstance, maxRestartRequests, "%.2f", "", hasRestart),
		duration(restarted, "start to nothing left to do", restart.Seconds, maxRestartSeconds, hasRestart),
		count(set, "SSH connections, worst host", setting.Worst.Connections, maxConnections, hasSetting),
		count(set, "reboots", setting.All.Reboots, 0, hasSetting),
		duration(set, "until all nodes have it", setting.Seconds, maxSettingSeconds, hasSetting),
	}
}

// upgradeLines judge upgrades of nodes.
func upgradeLines(r Result) []Line {
	same, hasSame := r.phase(1, fleet.SamePrograms)
	one, hasOne := r.phase(1, fleet.Upgrade)
	join, _ := r.phase(1, fleet.Join)
	many, hasMany := r.phase(smallFleetHosts, fleet.Upgrade)
	const nothing, single = "upgrade of a node, nothing on it differs", "upgrade of a node, another kubelet and kube-proxy"
	fleetwide := fmt.Sprintf("upgrade of %d nodes, %d at a time", smallFleetHosts, upgradedAtOnce)
	bytes := Line{Subject: single, What: "bytes on the wire", Budget: fmt.Sprintf("≤ %d %% of the first time's", maxUpgradePercent), Verdict: NotMeasured}
	if hasOne && join.Worst.Received > 0 {
		bytes.Measured, bytes.Verdict = percent(one.Worst.Received, join.Worst.Received), Kept
		if one.Worst.Received*100 > join.Worst.Received*maxUpgradePercent {
			bytes.Verdict = Over
		}
	}
	return []Line{
		count(nothing, "bytes on the wire", int(same.All.Received), 0, hasSame),
		count(nothing, "service operations on hosts", same.All.Services, 0, hasSame),
		duration(nothing, "start of the operator to the new version", same.Seconds, maxSameSeconds, hasSame),
		count(single, "SSH connections", one.Worst.Connections, maxConnections, hasOne),
		count(single, "execs", one.Worst.Execs, maxExecs, hasOne),
		count(single, "reboots", one.Worst.Reboots, 0, hasOne),
		bytes,
		count(fleetwide, "SSH connections, worst host", many.Worst.Connections, maxConnections, hasMany),
		count(fleetwide, "execs, worst host", many.Worst.Execs, maxExecs, hasMany),
	}
}

// limited judges a figure with a form.
func limited(subject, what string, measured, limit float64, form, unit string, known bool) Line {
	line := Line{Subject: subject, What: what, Budget: fmt.Sprintf("≤ %g%s", limit, unit), Verdict: NotMeasured}
	if known {
		line.Measured, line.Verdict = fmt.Sprintf(form, measured)+unit, Kept
		if measured > limit {
			line.Verdict = Over
		}
	}
	return line
}

// memory judges a number of bytes.
func memory(subject, what string, bytes, limit int64, known bool) Line {
	return limited(subject, what, float64(bytes)/mib, float64(limit)/mib, "%.0f", " MiB", known)
}

// slow is a line whose figure depends on the machine: it does not fail a run.
func slow(line Line) Line {
	if line.Verdict == Over {
		line.Verdict = Slow
	}
	return line
}
