package soak

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Day contains the measurements at the end of a day, in a quiet state, by the name of the measure. Missing
// values are 0.
type Day map[string]float64

// Verdict is the result for a measure.
type Verdict struct {
	Measure
	// Before and Last are the medians of the last two cycles.
	Before, Last float64
	// Growth is the median of the differences between each day of the last cycle and the same day of the
	// previous cycle, and Allowed is its limit.
	Growth, Allowed float64
}

// HasGrown reports whether the measure grows.
func (v Verdict) HasGrown() bool { return v.Growth > v.Allowed }

// String formats the verdict.
func (v Verdict) String() string {
	return fmt.Sprintf("%s: %.4g more than on the same day of the previous cycle (%.4g then, %.4g now); the limit is %.4g", v.Name, v.Growth,
		v.Before, v.Last, v.Allowed)
}

// Judge compares each day of the last cycle with the same day of the previous cycle, with the same actions: any
// increase is growth, independent of the work of a day. A few days with a busy machine do not affect the median of
// the differences. With a daily leak of one object, each difference is the number of days in a cycle. Earlier days
// are for warming up. Judge needs at least two cycles.
func Judge(days []Day, cycle int) ([]Verdict, error) {
	if cycle < 1 || len(days) < 2*cycle {
		return nil, fmt.Errorf("judge %d days in cycles of %d days: two whole cycles are needed", len(days), cycle)
	}
	before, last := days[len(days)-2*cycle:len(days)-cycle], days[len(days)-cycle:]
	var verdicts []Verdict
	for _, name := range measureNames(days) {
		v := Verdict{Measure: measureOf(name), Before: medianOf(before, name), Last: medianOf(last, name)}
		differences := make([]float64, cycle)
		for i := range differences {
			differences[i] = last[i][name] - before[i][name]
		}
		v.Growth, v.Allowed = medianValue(differences), max(v.Noise, v.Share*v.Before)*(1+fewDays/float64(cycle))
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// fewDays scales the additional noise that is allowed in short cycles, because the median of few days is not
// stable yet.
const fewDays = 3

// Grown returns the verdicts of measures that grow.
func Grown(verdicts []Verdict) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return !v.HasGrown() })
}

// measureNames returns the names of all measures in the days, in display order.
func measureNames(days []Day) []string {
	all := map[string]bool{}
	for _, day := range days {
		for name := range day {
			all[name] = true
		}
	}
	indexOf := func(name string) int {
		return slices.IndexFunc(measures, func(m Measure) bool { return m.Name == name })
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(uint(indexOf(a)), uint(indexOf(b))), cmp.Compare(a, b)) // unknown names come last
	})
}

func medianOf(days []Day, name string) float64 {
	values := make([]float64, len(days))
	for i, day := range days {
		values[i] = day[name]
	}
	return medianValue(values)
}

// medianValue returns the median of at least one value.
func medianValue(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
