package bench

import (
	"math"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// of returns the figure of an occasion in the fleet of a size, with the usual programs and nearby hosts.
func of(hosts int, occasion fleet.Occasion, get value) figure {
	return ofSize(usualSize, 0, hosts, occasion, get)
}

// ofSize returns the figure of an occasion in the fleet with a program size and a round-trip time.
func ofSize(sizePercent int, roundTrip time.Duration, hosts int, occasion fleet.Occasion, get value) figure {
	return func(r Result) float64 {
		for _, each := range r.Fleets {
			if phase, known := each.Phase(occasion); known && each.Hosts == hosts && each.SizePercent == sizePercent && each.RoundTrip == roundTrip {
				return get(phase)
			}
		}
		return math.NaN()
	}
}

// each returns the figure of an occasion divided by the number of hosts.
func each(hosts int, occasion fleet.Occasion, get value) figure {
	all := of(hosts, occasion, get)
	return func(r Result) float64 { return all(r) / float64(hosts) }
}

// growth returns the ratio of a host's join cost in the large fleet to its cost in the small fleet.
func growth(get value) figure {
	few, many := each(smallFleet, fleet.Join, get), each(largeFleet, fleet.Join, get)
	return func(r Result) float64 {
		if few(r) == 0 {
			return math.NaN()
		}
		return many(r) / few(r)
	}
}

// worst returns the highest figure of all fleets and the given occasions.
func worst(get value, occasion fleet.Occasion, more ...fleet.Occasion) figure {
	return func(r Result) float64 {
		highest := math.NaN()
		for _, each := range r.Fleets {
			for _, of := range append([]fleet.Occasion{occasion}, more...) {
				if phase, known := each.Phase(of); known {
					highest = higher(highest, get(phase))
				}
			}
		}
		return highest
	}
}

// higher returns the higher figure and ignores figures that were not measured.
func higher(a, b float64) float64 {
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
	return ofSize(realSize, distant, 1, fleet.Join, elapsed)(r) - ofSize(realSize, 0, 1, fleet.Join, elapsed)(r)
}

func worstPatch(r Result) float64 {
	highest := math.NaN()
	for _, patch := range r.Patches {
		highest = higher(highest, 100*float64(patch.PatchBytes)/float64(patch.FileBytes))
	}
	return highest
}
