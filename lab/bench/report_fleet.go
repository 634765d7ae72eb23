package bench

import (
	"fmt"
	"strconv"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// growthTable shows what one host costs among how many.
func growthTable(r Result) string {
	rows := [][]string{{"hosts", "first Ready", "half", "all", "API reads", "API writes", "operator", "control plane", "simulated hosts", "from the API server",
		"operator's memory at most"}}
	for _, each := range r.Fleets {
		join, known := each.Phase(fleet.Join)
		if !known {
			continue
		}
		hosts := strconv.Itoa(each.Hosts)
		if each.SizePercent != usualSize {
			hosts += fmt.Sprintf(", programs of %.0f MB", float64(each.PayloadBytes)/1e6)
		}
		n := float64(each.Hosts)
		rows = append(rows, []string{hosts, reached(join, 1), reached(join, (each.Hosts+1)/2), reached(join, each.Hosts),
			perHost(join.Reads, each.Hosts), perHost(join.Writes, each.Hosts), perHostTime(join.CPU.Operator, n),
			perHostTime(join.CPU.ControlPlane, n), perHostTime(join.CPU.Hosts, n), megabytes(int64(float64(join.FromAPI) / n)),
			memoryText(join.Memory, func(m *fleet.Memory) int64 { return m.Peak }),
		})
	}
	return "\n## Fleets\n\nAll hosts are listed at once. The operator is the program that is shipped, in a process of its own, with the settings of its Deployment; requests, bytes and processor " +
		"time are per host,\nand until nothing was left to do. The budgets compare the fleets of 100 and of 1,000; 250 hosts are between two rows. `build/lab fleet --hosts 100` measures one row.\n\n" + table(rows)
}

func reached(p fleet.Phase, hosts int) string {
	seconds, known := p.Reached(hosts)
	if !known {
		return ""
	}
	return fmt.Sprintf("%.1f s", seconds)
}

func perHostTime(seconds, hosts float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds/hosts) }

func memoryText(m *fleet.Memory, which func(*fleet.Memory) int64) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%.0f MiB", float64(which(m))/mib)
}

var occasionWords = map[fleet.Occasion]string{
	fleet.Idle: "nothing to do", fleet.Restart: "operator restarted", fleet.Setting: "a mirror for images",
	fleet.Rotation: "another SSH key", fleet.SamePrograms: "another version, same programs", fleet.Upgrade: "upgrade",
}

// dayTwoTable shows what happens to fleets that are Ready.
func dayTwoTable(r Result) string {
	rows := [][]string{{"hosts", "what", "first", "all", "connections", "execs", "to the host", "API reads", "API writes", "operator", "control plane",
		"from the API server", "operator's memory", "goroutines"}}
	for _, each := range r.Fleets {
		for _, phase := range each.Phases {
			if phase.Occasion == fleet.Join {
				continue
			}
			rows = append(rows, dayTwoRow(each, phase))
		}
	}
	return "\n## Fleets in service\n\nConnections, execs and bytes to the host are of the worst host, kind by kind. The rest is of all hosts together, until nothing was left to do. Processor time\nand " +
		"memory are the operator's, where it is a program of its own; an upgrade needs another version, which runs in the process of the hosts. Nothing to do: for a minute. Restarted: asked to end, as a\nrollout does, and " +
		"started again; an operator that was killed is replaced when its lease is over, 137 s later. A mirror: an ImageDigestMirrorSet, which containerd reads anew for each image. Another SSH\nkey: the Secret has the " +
		"new and the old one. Upgrade: another kubelet and another kube-proxy; first is the node that goes ahead, alone, and the others follow ten at a time.\n\n" + table(rows)
}

func dayTwoRow(f fleet.Result, p fleet.Phase) []string {
	all := fmt.Sprintf("%.1f s", p.Seconds)
	first := ""
	if len(p.Arrivals) > 1 {
		first = reached(p, 1)
	}
	goroutines, own, got := "", "", ""
	if p.Memory != nil { // else the operator was no program of its own, and its bytes did not pass the meter
		goroutines, own, got = strconv.Itoa(p.Memory.Goroutines), fmt.Sprintf("%.1f s", p.CPU.Operator), megabytes(p.FromAPI)
	}
	return []string{strconv.Itoa(f.Hosts), occasionWords[p.Occasion], first, all, strconv.Itoa(p.Worst.Connections), strconv.Itoa(p.Worst.Execs),
		megabytes(p.Worst.Received), strconv.Itoa(p.Reads), strconv.Itoa(p.Writes), own, fmt.Sprintf("%.1f s", p.CPU.ControlPlane),
		got, memoryText(p.Memory, func(m *fleet.Memory) int64 { return m.Resident }), goroutines}
}
