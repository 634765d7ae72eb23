package soak

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Document formats a report as docs/soak.md.
func Document(r Report) string {
	var b strings.Builder
	cycle := Cycle(len(r.Days))
	fmt.Fprintf(&b, "# Soak\n\nWritten by `make soak DAYS=%d`. A fleet of %d listed hosts and %d Machines lived for %d days of virtual time, which took %s on\n"+
		"%d cores (%s/%s, %s). Operator, agents and hosts are one process, which is measured; [verified.md](verified.md) says what follows which clock.\n\n",
		len(r.Days), listedHosts, machines, len(r.Days), r.Elapsed.Round(time.Minute), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&b, "Each day is measured at its end, when nothing is under way. The growth is the median of how much more it was on the last %d days than on the same\n"+
		"day of the cycle before, on which the same was done; a run fails if it is more than what is allowed.\n\n", cycle)
	b.WriteString(growthTable(r, cycle))
	b.WriteString("\n## What happened\n\n| how often | what |\n|---|---|\n")
	for _, deed := range slices.Sorted(maps.Keys(r.Done)) {
		fmt.Fprintf(&b, "| %d | %s |\n", r.Done[deed], deed)
	}
	return b.String()
}

func growthTable(r Report, cycle int) string {
	var b strings.Builder
	b.WriteString("| what | ")
	shown := []int{len(r.Days) - 2*cycle, len(r.Days) - cycle, len(r.Days)}
	for _, number := range shown {
		fmt.Fprintf(&b, "day %d | ", number)
	}
	b.WriteString("growth | allowed | because of |\n|---|---|---|---|---|---|---|\n")
	kinds := 0
	for _, v := range r.Verdicts {
		if isKindMeasure(v.Name) {
			if kinds++; !v.HasGrown() {
				continue
			}
		}
		what := v.Name
		if v.Unit != "" {
			what += ", " + v.Unit
		}
		if v.HasGrown() {
			what = "**" + what + "**"
		}
		fmt.Fprintf(&b, "| %s | ", what)
		for _, number := range shown {
			fmt.Fprintf(&b, "%s | ", formatFigure(r.Days[max(number, 1)-1][v.Name]))
		}
		fmt.Fprintf(&b, "%s | %s | %s |\n", formatFigure(v.Growth), formatFigure(v.Allowed), v.Why)
	}
	fmt.Fprintf(&b, "\nOf each of the %d kinds of objects no more may be there than before.\n", kinds)
	return b.String()
}

// formatFigure formats integers without a fraction.
func formatFigure(value float64) string {
	if value == float64(int(value)) {
		return fmt.Sprint(int(value))
	}
	return fmt.Sprintf("%.1f", value)
}
