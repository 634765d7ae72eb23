package bench

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Markdown renders a result as docs/benchmarks.md.
func Markdown(r Result) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n" + summaryText(r) + "\n## How it is measured\n\n")
	b.WriteString("Written by `make bench`. Hosts are simulated and cost next to nothing themselves; the control plane, SSH and SFTP, the operator\n" +
		"and the agent are real. Counts and bytes are the same on every machine, and the run fails when one is over its budget. Times are of\n" +
		"this machine, where control plane, operator and all hosts share the cores; they only warn. Those of a new Machine are virtual: they are what was\n" +
		"waited for, the same on every machine, and a budget that they miss fails the run.\n\n")
	b.WriteString(machineText(r))
	b.WriteString("\n\n" + payloadText("Payload", r.Payload))
	if r.Whole != nil {
		b.WriteString(payloadText("Payload of the real size, with which the bytes on the wire are measured", r.Whole.Payload))
		fmt.Fprintf(&b, "One host with it was Ready after %.1f s, and received %s.\n", r.Whole.Join.Seconds,
			megabytes(r.Whole.Join.Worst.Received))
	}
	b.WriteString("\nAll but the agent are stand-ins: they compress as the real executables do together (55 to 62 of 308 MB), and are a twelfth of their\n" +
		"size where it is not said otherwise.\n")
	b.WriteString(budgetTable(r.Lines))
	b.WriteString(theMisses)
	b.WriteString(joinTable(r))
	b.WriteString(arrivalTable(r))
	b.WriteString(quietTable(r))
	b.WriteString(growthTable(r))
	b.WriteString(dayTwoTable(r))
	b.WriteString(transferTable(r))
	b.WriteString(theImage)
	b.WriteString(notHere)
	return b.String()
}

// machineText names the machine, and for each part the load at its beginning.
func machineText(r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s, %d cores, %s, %s.", r.Machine.CPU, r.Machine.Cores, r.Machine.System, r.Machine.GoVersion)
	var loads []string
	for _, part := range allParts() {
		if machine, known := r.Parts[part]; known && machine.Load != "" {
			loads = append(loads, fmt.Sprintf("%s %s (%s)", part, machine.Load, machine.Day))
		}
	}
	if len(loads) > 0 {
		fmt.Fprintf(&b, " Load when each part began, and the day: %s.", strings.Join(loads, ", "))
	}
	return b.String()
}

func payloadText(what string, p Payload) string {
	return fmt.Sprintf("%s: %d files, %s raw with the agent (%s); the other files take %s packed (%s).\n",
		what, p.Files, megabytes(p.RawBytes), megabytes(p.AgentBytes), megabytes(p.ArchiveBytes),
		percent(p.ArchiveBytes, p.RawBytes-p.AgentBytes))
}

// theImage is a run of its own, which takes an hour: its figures are entered by hand.
//
//go:embed image.md
var theImage string

// theMisses says why budgets are missed, by profiles: it is entered by hand.
//
//go:embed misses.md
var theMisses string

const notHere = `
## What is not measured

A patch release of one real component is measured where the payload was made with PREVIOUS. The processor time and the memory of an operator that upgrades nodes are measured
together with those of the hosts.
`

// Summary returns the run in one line.
func Summary(r Result) string {
	missed := Failed(r.Lines)
	s := fmt.Sprintf("bench: %d of %d budgets kept", len(with(r.Lines, Kept)), len(r.Lines))
	for _, part := range []struct {
		verdict Verdict
		words   string
	}{{Over, "over"}, {Slow, "slow"}, {NotMeasured, "not measured"}} {
		if n := len(with(r.Lines, part.verdict)); n > 0 {
			s += fmt.Sprintf(", %d %s", n, part.words)
		}
	}
	for i, line := range missed {
		s += map[bool]string{true: ": ", false: "; "}[i == 0]
		s += fmt.Sprintf("%s of %s %s (budget %s)", line.What, line.Subject, line.Measured, line.Budget)
	}
	return s
}

func budgetTable(lines []Line) string {
	rows := [][]string{{"", "what", "measured", "budget", "verdict"}}
	for _, l := range lines {
		verdict := string(l.Verdict)
		if l.Verdict == Over || l.Verdict == Slow {
			verdict = "**" + verdict + "**"
		}
		rows = append(rows, []string{l.Subject, l.What, l.Measured, l.Budget, verdict})
	}
	return "\n## Budgets\n\n" + table(rows)
}

func joinTable(r Result) string {
	rows := [][]string{{"hosts", "round trip", "to all Ready", "connections", "execs", "PowerShell", "SFTP sessions",
		"reboots", "steps", "to the host", "from the host", "API reads", "API writes"}}
	for _, j := range r.Joins {
		rows = append(rows, []string{
			fmt.Sprint(j.Hosts), milliseconds(j.RoundTrip), fmt.Sprintf("%.1f s", j.Seconds), fmt.Sprint(j.Worst.Connections),
			fmt.Sprint(j.Worst.Execs),
			fmt.Sprint(j.Worst.PowerShell), fmt.Sprint(j.Worst.SFTPSessions), fmt.Sprint(j.Worst.Reboots),
			perHost(j.Steps, j.Hosts),
			megabytes(j.Worst.Received), megabytes(j.Worst.Sent), perHost(j.Reads, j.Hosts), perHost(j.Writes, j.Hosts),
		})
	}
	return "\n## From the ConfigMap to Ready\n\nThe operator runs before the ConfigMap is made. " +
		"Counts and bytes are for the\nworst host, kind by kind; steps and the operator's requests to the API server are per host.\n\n" + table(rows)
}

func arrivalTable(r Result) string {
	rows := [][]string{{"what", "whose", "takes"}}
	if a := r.Arrival; a != nil {
		row := func(what, whose string, took time.Duration) {
			rows = append(rows, []string{what, whose, fmt.Sprintf("%.1f s", took.Seconds())})
		}
		row("the user data ends, and the host accepts the operator's key", "host", a.UserData)
		row("the operator notices, and connects", "operator", a.Noticed)
		row("bytes are on the line", "line", a.Line)
		row("Windows installs features and restarts", "host", a.Windows)
		row("the operator notices that the host is back, and connects", "operator", a.Returned)
		row("round trips, and whatever else is waited for", "operator", a.Between)
		row("together", "", a.Total())
	}
	return "\n## A new Machine\n\nFrom the moment when port 22 is open until the node is Ready, in virtual time, at 50 ms round trip and 100 Mbit/s. " +
		"The host accepts the key right\nafter the operator was refused, so that the operator notices as late as it may.\n\n" + table(rows)
}

func quietTable(r Result) string {
	rows := [][]string{{"hosts", "the operator was", "for", "reconciles", "connections", "execs", "process starts",
		"service operations", "API writes"}}
	for _, q := range r.Quiets {
		writes := fmt.Sprint(q.Writes)
		for _, kind := range slices.Sorted(maps.Keys(q.WriteKinds)) {
			writes += fmt.Sprintf("; %d × %s", q.WriteKinds[kind], kind)
		}
		rows = append(rows, []string{
			fmt.Sprint(q.Hosts), string(q.Occasion), fmt.Sprintf("%.0f s", q.Seconds), fmt.Sprint(q.Reconciles),
			fmt.Sprint(q.All.Connections),
			fmt.Sprint(q.All.Execs), fmt.Sprint(q.All.Processes), fmt.Sprint(q.All.Services), writes,
		})
	}
	return "\n## With nothing to do\n\nAll hosts are Ready; counts are of all of them together. Made to look again: its connections to the API server " +
		"were cut, and every\ninstance, the Secret, the ConfigMap and the Infrastructure were annotated. Restarted: killed, and started anew. " +
		"Of another\nversion: that, and all nodes got the new version, whose programs are the same. Leases are not counted.\n\n" + table(rows)
}

func transferTable(r Result) string {
	rows := [][]string{{"round trip", "plain", "agent", "archive", "ratio", "bytes, plain", "bytes, ours"}}
	what := "The payload is of stand-ins."
	if r.Real {
		what = fmt.Sprintf("The payload is the real one of `make payload`: %d files, %s, packed %s without the agent.",
			r.Transferred.Files, megabytes(r.Transferred.RawBytes), megabytes(r.Transferred.ArchiveBytes))
	}
	about := ""
	for _, t := range r.Transfers {
		ratio := ""
		if about = ""; t.PlainPart > 0 && t.PlainPart < 1 {
			about = "≈ " // extrapolated
		}
		if t.OwnSeconds() > 0 {
			ratio = fmt.Sprintf("%.1f", t.PlainSeconds/t.OwnSeconds())
		}
		rows = append(rows, []string{
			milliseconds(t.RoundTrip), about + fmt.Sprintf("%.2f s", t.PlainSeconds), fmt.Sprintf("%.2f s", t.AgentSeconds),
			fmt.Sprintf("%.2f s", t.ArchiveSeconds), ratio,
			about + megabytes(t.PlainBytes), megabytes(t.OwnBytes),
		})
	}
	return "\n## The same payload in two ways\n\n" + what +
		" Plain is SFTP of the raw files one after the other, 32 KiB for each round trip. Ours is the agent as it is, and " +
		"then all the others in one packed archive, sent ahead.\nBoth begin after the login, over the same line, to one host. ≈ is extrapolated from a part of the files:\neach packet waits for the answer to the one before.\n\n" + table(rows)
}

// table returns a Markdown table; the first row is its head.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	if len(rows) == 1 {
		b.WriteString("\nNot measured in this run.\n")
	}
	return b.String()
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }

// percent returns a share of a whole; empty when there is none.
func percent(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func perHost(n, hosts int) string {
	if hosts == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(n)/float64(hosts))
}
