package bench

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// What the physical limits are reckoned with.
const (
	lineBits  = 100e6    // of a line to a host, in a second
	hashedNow = 64 << 20 // bytes, to learn how fast this machine hashes
)

// hashSpeed returns how many bytes this machine hashes in a second.
func hashSpeed() (float64, error) {
	hash, begin := sha256.New(), time.Now()
	if _, err := io.CopyN(hash, zeros{}, hashedNow); err != nil {
		return 0, fmt.Errorf("learn how fast this machine hashes: %w", err)
	}
	return hashedNow / time.Since(begin).Seconds(), nil
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

const notMeasured = "not measured in this run"

// summaryText is for those who know nothing of this project.
func summaryText(r Result) string {
	rows := [][]string{{"what", "this operator", "the physical limit", "the operator before version 12", "measured by"}}
	add := func(what, own, limit, before, command string) {
		if own == "" {
			own = notMeasured
		}
		rows = append(rows, []string{what, own, limit, before, "`build/lab bench --only " + command + "`"})
	}
	add("One host becomes a node: what is done on it", r.onOneHost(), "two connections, because Windows restarts once for its Containers feature",
		"1 connection, 81 commands, of which 52 start PowerShell, 26 SFTP sessions", "joins")
	add("One host becomes a node: the time, without that of Windows itself", r.secondsOf(1), r.linkLimit(), "76.6 s: 36 s in PowerShell, 16 to 31 s of waiting", "joins")
	add("A new virtual machine becomes a node, from its open port 22 on", r.arrivalText(), r.windowsLimit(), "not measured", "arrival")
	add("10 hosts at once", r.secondsOf(10), "as one host, where the line and the cores are as many times wider", "312 s: one after the other", "joins")
	add("1,000 hosts at once, on two cores that they share with the operator and a whole control plane", r.thousandText(), "", "not measured; 100 hosts: an hour, by extrapolation", "fleets")
	add("Bytes to a host that has none of the programs", r.wireText(), "what the programs are together, compressed",
		"each file compressed by itself; 32 KiB for each round trip", "whole,transfers")
	add("Nothing to do", r.idleText(), "nothing", "each 2 minutes 6 or 7 starts of PowerShell on each host", "joins")
	add("The operator restarts, and all nodes are healthy", r.restartText(), "one read of each object", "each node is visited three times", "joins,fleets")
	add("A node gets another kubelet and kube-proxy", r.upgradeText(), "the bytes that differ", "6 connections, 129 commands, of which 87 start PowerShell; all bytes again", "fleets")
	add("Memory of an operator that knows 1,000 nodes", r.knownText(), "", "not measured", "fleets")
	return "\n## Summary\n\nThe operator turns Windows hosts into nodes of a Kubernetes cluster: it logs in to each over SSH, sends the programs of a node, has them installed and started, and looks\n" +
		"after the node from then on. What is measured here is what that costs: the host, the network, the API server, and the time of whoever waits. Each figure is repeated by the command\n" +
		"in its row, after `make build`; `make bench` does them all. The physical limit is what no operator can save: a line of 100 Mbit/s, one SHA-256 of each byte that a host is to run, and what Windows\nitself " +
		"takes for its features and a restart.\n\n" + table(rows) +
		"\nThe operator before version 12 is openshift/windows-machine-config-operator at its release for OpenShift 5.0. Its figures were measured once, in August 2026: its own program, a real API server, and simulated\nSSH hosts " +
		"that cost nothing themselves, except that each start of PowerShell took 0.7 s. No command here repeats them: its program is not part of this repository.\n"
}

func (r Result) onOneHost() string {
	join, known := r.join(1, 0)
	if !known {
		return ""
	}
	c := join.Worst
	return fmt.Sprintf("%d connections, %d commands, of which %d start PowerShell, %d SFTP sessions, %d restart", c.Connections, c.Execs, c.PowerShell, c.SFTPSessions, c.Reboots)
}

func (r Result) secondsOf(hosts int) string {
	join, known := r.join(hosts, 0)
	if !known {
		return ""
	}
	return fmt.Sprintf("%.1f s", join.Seconds)
}

// linkLimit is what line and hashing take for the programs of one host.
func (r Result) linkLimit() string {
	join, known := r.join(1, 0)
	if !known {
		return ""
	}
	text := fmt.Sprintf("%.1f s for %s on the line", float64(join.Worst.Received)*8/lineBits, megabytes(join.Worst.Received))
	if r.HashSpeed > 0 {
		text += fmt.Sprintf(", and %.2f s to hash %s", float64(r.Payload.RawBytes)/r.HashSpeed, megabytes(r.Payload.RawBytes))
	}
	return text
}

func (r Result) arrivalText() string {
	if r.Arrival == nil {
		return ""
	}
	return fmt.Sprintf("%.0f s, of which %.0f s are ours", r.Arrival.Total().Seconds(), r.Arrival.Own().Seconds())
}

func (r Result) windowsLimit() string {
	if r.Arrival == nil {
		return ""
	}
	return fmt.Sprintf("%.0f s of user data, features and restart, as the lab's cloud takes for them", (r.Arrival.UserData + r.Arrival.Windows).Seconds())
}

func (r Result) thousandText() string {
	join, known := r.phase(largeFleetHosts, fleet.Join)
	if !known {
		return ""
	}
	first, _ := join.Reached(1)
	return fmt.Sprintf("the first Ready after %.0f s, all after %.0f s; %.2f s of processor time for each, of which %.2f s are the operator's", first, join.Seconds,
		join.CPU.Total()/largeFleetHosts, join.CPU.Operator/largeFleetHosts)
}

func (r Result) wireText() string {
	if r.Whole == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s, %s", megabytes(r.Whole.Join.Worst.Received), megabytes(r.Whole.Payload.RawBytes), percent(r.Whole.Join.Worst.Received, r.Whole.Payload.RawBytes))
}

func (r Result) idleText() string {
	cost, writes, known := quiets(r, LeftAlone)
	if !known {
		return ""
	}
	return fmt.Sprintf("%d connections, %d process starts, %d writes to the API", cost.Connections, cost.Processes, writes)
}

func (r Result) restartText() string {
	var parts []string
	if cost, _, known := quiets(r, Restarted); known {
		parts = append(parts, fmt.Sprintf("%d connections", cost.Connections))
	}
	if restart, known := r.phase(largeFleetHosts, fleet.Restart); known {
		parts = append(parts, fmt.Sprintf("with 1,000 nodes idle after %.0f s, with %.2f requests for each", restart.Seconds, float64(restart.Reads+restart.Writes)/largeFleetHosts))
	}
	return strings.Join(parts, "; ")
}

func (r Result) upgradeText() string {
	one, known := r.phase(1, fleet.Upgrade)
	if !known {
		return ""
	}
	return fmt.Sprintf("SSH connections: %d; commands: %d; %s, %.1f s", one.Worst.Connections, one.Worst.Execs, megabytes(one.Worst.Received), one.Seconds)
}

func (r Result) knownText() string {
	idle, known := r.phase(largeFleetHosts, fleet.Idle)
	if !known || idle.Memory == nil {
		return ""
	}
	return fmt.Sprintf("%.0f MiB, and %.2f %% of a core", float64(idle.Memory.Resident)/mib, 100*idle.CPU.Operator/idle.Seconds)
}
