package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
)

// limits contains the permitted counts by directory and check, where they exceed the final limits.
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

// allowedCount returns the final limit for a directory of that size.
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
	l, increase := limits{}, map[string]int{}
	for _, limits := range old {
		for name, limit := range limits {
			increase[name] -= limit
		}
	}
	for directory, t := range counts {
		for _, c := range checks {
			if count := t.counts[c.name]; count > c.allowedCount(t) {
				if l[directory] == nil {
					l[directory] = map[string]int{}
				}
				l[directory][c.name] = count
				increase[c.name] += count
			}
		}
	}
	for name, n := range increase {
		if old != nil && n > 0 {
			return fmt.Errorf("%q: the sum of the limits must not rise by %d", name, n)
		}
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
