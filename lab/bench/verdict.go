package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// Verdict is the result of a budget.
type Verdict string

// Verdicts. Only Over fails a run.
const (
	Kept        Verdict = "kept"
	Over        Verdict = "OVER"
	Slow        Verdict = "slow"
	NotMeasured Verdict = "not measured"
)

// Line is one budget with its measurement.
type Line struct {
	Subject  string   `json:"subject"`
	What     string   `json:"what"`
	Measured *float64 `json:"measured,omitempty"`
	Limit    float64  `json:"limit"`
	Unit     string   `json:"unit,omitempty"`
	Verdict  Verdict  `json:"verdict"`
}

// evaluateBudgets compares a result with all budgets.
func evaluateBudgets(r Result) []Line {
	var lines []Line
	for _, b := range allBudgets() {
		line := Line{Subject: b.subject, What: b.what, Limit: b.limit, Unit: b.unit, Verdict: NotMeasured}
		if measured := b.figure(r); !math.IsNaN(measured) {
			line.Measured, line.Verdict = &measured, b.verdictFor(measured)
		}
		lines = append(lines, line)
	}
	return lines
}

func (b budget) verdictFor(measured float64) Verdict {
	switch exceeded := measured > b.limit || b.unit == seconds && measured == b.limit; {
	case !exceeded:
		return Kept
	case b.varies || b.unit == seconds:
		return Slow
	default:
		return Over
	}
}

func withVerdict(lines []Line, verdict Verdict) (chosen []Line) {
	for _, line := range lines {
		if line.Verdict == verdict {
			chosen = append(chosen, line)
		}
	}
	return chosen
}

func (l Line) formatMeasured() string {
	if l.Measured == nil {
		return ""
	}
	unit, _, _ := strings.Cut(l.Unit, " ") // "%" of "% of a core"
	return strings.TrimSpace(formatRounded(*l.Measured) + " " + unit)
}

func (l Line) formatBudget() string {
	sign := "≤ "
	switch {
	case l.Limit == 0:
		sign = ""
	case l.Unit == seconds:
		sign = "< "
	}
	return strings.TrimSpace(sign + formatRounded(l.Limit) + " " + l.Unit)
}

func formatRounded(figure float64) string { return fmt.Sprint(math.Round(100*figure) / 100) }

// formatSummary returns the run in one line.
func formatSummary(lines []Line) string {
	s := fmt.Sprintf("bench: %d of %d budgets kept", len(withVerdict(lines, Kept)), len(lines))
	for _, verdict := range []Verdict{Over, Slow, NotMeasured} {
		if n := len(withVerdict(lines, verdict)); n > 0 {
			s += fmt.Sprintf(", %d %s", n, strings.ToLower(string(verdict)))
		}
	}
	separator := ": "
	for _, line := range withVerdict(lines, Over) {
		s += fmt.Sprintf("%s%s of %s: %s (budget %s)", separator, line.What, line.Subject, line.formatMeasured(), line.formatBudget())
		separator = "; "
	}
	return s
}

// printTables prints the fleets and the budgets: the work on the worst host, kind by kind, and the requests for
// all hosts.
func printTables(output io.Writer, r Result) error {
	w := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\n\nHOSTS\tPROGRAMS\tROUND TRIP\tSCENARIO\tFIRST\tALL\tCONNECTIONS\tEXECS\tSERVICES\tRECEIVED\tREADS\tWRITES\tCPU OPERATOR\tCPU ALL\tMEMORY\n", r.Machine)
	for _, each := range r.Fleets {
		for _, p := range each.Phases {
			first, cpu, memory := "", "", ""
			if p.Memory != nil { // otherwise the operator ran in the process of the hosts
				cpu, memory = fmt.Sprintf("%.1f s", operatorCPU(p)), fmt.Sprintf("%.0f MiB", peakMemory(p))
			}
			if at := secondsUntilReached(1)(p); !math.IsNaN(at) {
				first = fmt.Sprintf("%.1f s", at)
			}
			fmt.Fprintf(w, "%d\t%.0f MB\t%d ms\t%s\t%s\t%.1f s\t%d\t%d\t%d\t%.2f MB\t%d\t%d\t%s\t%.1f s\t%s\n", each.Hosts, float64(each.PayloadBytes)/1e6,
				each.RoundTrip/time.Millisecond, p.Scenario, first, elapsed(p), p.Worst.Connections, p.Worst.Execs, p.Worst.Services,
				received(p)/1e6, p.Reads, p.Writes, cpu, allCPU(p), memory)
		}
	}
	fmt.Fprint(w, "\nSUBJECT\tWHAT\tMEASURED\tBUDGET\tVERDICT\n")
	for _, line := range r.Budgets {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", line.Subject, line.What, line.formatMeasured(), line.formatBudget(), line.Verdict)
	}
	return w.Flush()
}
