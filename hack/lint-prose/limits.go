package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// limits contains the permitted counts by directory and check.
type limits map[string]map[string]int

func readLimits(path string) (limits, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l limits
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return l, nil
}

// allowedCount returns the count that a directory of that size may always have.
func (c check) allowedCount(t *tally) int {
	return int(math.Ceil(c.final * float64(t.sizes[c.source]) / 10_000))
}

// compareCounts returns the counts that exceed their limit.
func compareCounts(l limits, counts tree) []string {
	var failures []string
	for _, directory := range slices.Sorted(maps.Keys(counts)) {
		t := counts[directory]
		for _, c := range checks {
			limit := max(l[directory][c.name], c.allowedCount(t))
			if count := t.counts[c.name]; count > limit {
				failures = append(failures, fmt.Sprintf("%s: %q: %d, and at most %d are allowed", directory, c.name, count, limit))
			}
		}
	}
	return failures
}

// updateLimits writes the current counts as limits. Text may move between directories, but the total of a check
// must not increase.
func updateLimits(path string, old limits, counts tree) error {
	l := limits{}
	for _, c := range checks {
		before, now := 0, 0
		for _, limits := range old {
			before += limits[c.name]
		}
		for directory, t := range counts {
			count := t.counts[c.name]
			if count <= c.allowedCount(t) {
				continue
			}
			now += count
			if l[directory] == nil {
				l[directory] = map[string]int{}
			}
			l[directory][c.name] = count
		}
		if old != nil && now > before {
			return fmt.Errorf("%q: the limits are not raised from %d to %d", c.name, before, now)
		}
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(bytes.TrimSpace(data), '\n'), 0o644)
}

// reportAreas lists the columns of the report.
var reportAreas = []string{"product", "lab", "hack", "tests", "docs"}

// areaOf returns the column that a directory belongs to.
func areaOf(directory string) string {
	root, _, _ := strings.Cut(directory, "/")
	switch {
	case strings.HasSuffix(directory, " (tests)"):
		return "tests"
	case root == "internal" || root == "api" || root == "cmd":
		return "product"
	}
	return root
}

// printReport prints the counts per 10,000 words, functions, strings or lines.
func printReport(to io.Writer, counts tree) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "per 10,000\t%s\tfinal\tfield\n", strings.Join(reportAreas, "\t"))
	for _, c := range checks {
		count, size := map[string]int{}, map[string]int{}
		for directory, t := range counts {
			count[areaOf(directory)] += t.counts[c.name]
			size[areaOf(directory)] += t.sizes[c.source]
		}
		fmt.Fprintf(table, "%s (%s)\t", c.name, c.source)
		for _, area := range reportAreas {
			fmt.Fprintf(table, "%.0f\t", float64(count[area])*10_000/float64(max(size[area], 1)))
		}
		fmt.Fprintf(table, "%.0f\t%s\n", c.final, c.field)
	}
	_ = table.Flush() // to the terminal
}
