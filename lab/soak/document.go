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
	b.WriteString("# Soak\n\n")
	writeParagraph(&b, "Written by `make soak DAYS=%d`. A fleet of %d listed hosts and %d Machines ran for %d days of virtual time, which took %s on %d cores "+
		"(%s/%s, %s). The measured process contains operator, agents and hosts. [The lab](verified/lab.md) lists the clocks.",
		len(r.Days), listedHosts, machines, len(r.Days), r.Elapsed.Round(time.Minute), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	writeParagraph(&b, "Each day is measured at its end, when no work is pending. A run consists of cycles of %d days with the same actions. The growth is the median of "+
		"the differences between each day of the last cycle and the same day of the previous cycle. A run fails if the growth exceeds the limit.", cycle)
	b.WriteString(growthTable(r, cycle))
	b.WriteString("\n## Actions\n\n| number | action |\n|---|---|\n")
	for _, deed := range slices.Sorted(maps.Keys(r.Done)) {
		fmt.Fprintf(&b, "| %d | %s |\n", r.Done[deed], deed)
	}
	return b.String()
}

func growthTable(r Report, cycle int) string {
	var b strings.Builder
	b.WriteString("| measure | ")
	shown := []int{len(r.Days) - 2*cycle, len(r.Days) - cycle, len(r.Days)}
	for _, number := range shown {
		fmt.Fprintf(&b, "day %d | ", number)
	}
	b.WriteString("growth | limit | source of noise |\n|---|---|---|---|---|---|---|\n")
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
	fmt.Fprintf(&b, "\nThe number of objects of each of the %d kinds must not grow.\n", kinds)
	return b.String()
}

// maxColumns is the width of paragraphs, as hack/lint-prose checks it.
const maxColumns = 80

// writeParagraph writes a wrapped paragraph and an empty line.
func writeParagraph(b *strings.Builder, format string, args ...any) {
	width := 0
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		switch {
		case width == 0:
		case width+1+len(word) > maxColumns:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	b.WriteString("\n\n")
}

// formatFigure formats integers without a fraction.
func formatFigure(value float64) string {
	if value == float64(int(value)) {
		return fmt.Sprint(int(value))
	}
	return fmt.Sprintf("%.1f", value)
}
