package bench

import (
	"math"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// phaseFigure returns the figure of a scenario in the fleet of a size, with the usual programs and nearby hosts.
func phaseFigure(hosts int, scenario fleet.Scenario, get value) figure {
	return sizedPhaseFigure(usualSize, 0, hosts, scenario, get)
}

// sizedPhaseFigure returns the figure of a scenario in the fleet with a program size and a round-trip time.
func sizedPhaseFigure(sizePercent int, roundTrip time.Duration, hosts int, scenario fleet.Scenario, get value) figure {
	return func(r Result) float64 {
		for _, each := range r.Fleets {
			if phase, known := each.Phase(scenario); known && each.Hosts == hosts && each.SizePercent == sizePercent && each.RoundTrip == roundTrip {
				return get(phase)
			}
		}
		return math.NaN()
	}
}

// perHostFigure returns the figure of a scenario divided by the number of hosts.
func perHostFigure(hosts int, scenario fleet.Scenario, get value) figure {
	all := phaseFigure(hosts, scenario, get)
	return func(r Result) float64 { return all(r) / float64(hosts) }
}

// joinCostGrowth returns the ratio of a host's join cost in the large fleet to its cost in the small fleet.
func joinCostGrowth(get value) figure {
	few, many := perHostFigure(smallFleet, fleet.Join, get), perHostFigure(largeFleet, fleet.Join, get)
	return func(r Result) float64 {
		if few(r) == 0 {
			return math.NaN()
		}
		return many(r) / few(r)
	}
}

// worstFigure returns the highest figure of all fleets and the given scenarios.
func worstFigure(get value, scenario fleet.Scenario, more ...fleet.Scenario) figure {
	return func(r Result) float64 {
		highest := math.NaN()
		for _, each := range r.Fleets {
			for _, of := range append([]fleet.Scenario{scenario}, more...) {
				if phase, known := each.Phase(of); known {
					highest = maxMeasured(highest, get(phase))
				}
			}
		}
		return highest
	}
}

// maxMeasured returns the higher figure and ignores figures that were not measured.
func maxMeasured(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// wirePercent returns all bytes that a host received until it was Ready, in percent of the size of its
// programs.
func wirePercent(r Result) float64 {
	for _, each := range r.Fleets {
		if phase, known := each.Phase(fleet.Join); known && each.SizePercent == realSize {
			return 100 * received(phase) / float64(each.PayloadBytes)
		}
	}
	return math.NaN()
}

// addedSeconds returns the delay that the distance of a host adds to its join.
func addedSeconds(r Result) float64 {
	return sizedPhaseFigure(realSize, distant, 1, fleet.Join, elapsed)(r) - sizedPhaseFigure(realSize, 0, 1, fleet.Join, elapsed)(r)
}

func worstPatch(r Result) float64 {
	highest := math.NaN()
	for _, patch := range r.Patches {
		highest = maxMeasured(highest, 100*float64(patch.PatchBytes)/float64(patch.FileBytes))
	}
	return highest
}
