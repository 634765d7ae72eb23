package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one host in the view.
type row struct {
	name, address, status string
	ready                 bool
	step                  string // "3/12"
	detail                string
	started, ended        time.Time // ended is zero until the host is Ready
}

func (r row) elapsed(now time.Time) time.Duration {
	if !r.ended.IsZero() {
		now = r.ended
	}
	return now.Sub(r.started)
}

// screen is how much fits on the terminal.
type screen struct{ width, height int }

// render returns the view: a heading, one line for each host as far as they fit, those that are not Ready first, and a
// line that counts.
func render(rows []row, expected int, now time.Time, size screen) []string {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(compareBool(a.ready, b.ready), a.started.Compare(b.started), cmp.Compare(a.name, b.name))
	})
	cells := [][]string{{"NAME", "ADDRESS", "STATUS", "STEP", "ELAPSED", "DETAIL"}}
	ready := 0
	var longest time.Duration
	for _, r := range rows {
		cells = append(cells, []string{r.name, r.address, r.status, r.step, seconds(r.elapsed(now)), r.detail})
		longest = max(longest, r.elapsed(now))
		if r.ready {
			ready++
		}
	}
	// The heading, the last line and the cursor's line need three.
	fitting := max(1, size.height-3)
	hidden := max(0, len(rows)-fitting)
	if hidden > 0 {
		cells = cells[:fitting+1]
	}
	lines := columns(cells, size.width)
	last := fmt.Sprintf("%d of %d Ready, %s", ready, expected, seconds(longest))
	if hidden > 0 {
		last += fmt.Sprintf(" (%d more hosts)", hidden)
	}
	return append(lines, clip(last, size.width))
}

// columns aligns cells. The last column takes what is left of the width.
func columns(cells [][]string, width int) []string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(cells))
	for i, line := range cells {
		var b strings.Builder
		for j, cell := range line {
			b.WriteString(cell)
			if j < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)+2))
			}
		}
		lines[i] = strings.TrimRight(clip(b.String(), width), " ")
	}
	return lines
}

// clip shortens a line to the width, and says so. A width of 0 is any.
func clip(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(0, width-1)]) + "…"
}

func seconds(d time.Duration) string { return d.Truncate(time.Second).String() }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
