package standin

import (
	"hash/fnv"
	"math"
	"time"
)

// load is the simulated use of a resource: a ratio that oscillates about a mean. The parameters are derived
// from the names of the host and the resource, so that hosts differ and each scrape is consistent.
type load struct{ mean, swing, period, phase float64 }

// loadOf returns a load between least and most. The period is two to eight minutes.
func loadOf(host, what string, least, most float64) load {
	random := func(name string) float64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(host + "/" + what + "/" + name)) // a hash never fails
		return float64(h.Sum64()>>11) / (1 << 53)
	}
	mean := least + (most-least)*(0.3+0.4*random("mean"))
	amplitude := min(mean-least, most-mean)
	return load{mean: mean, swing: amplitude * (0.4 + 0.6*random("swing")), period: 120 + 360*random("period"),
		phase: 2 * math.Pi * random("phase")}
}

func (l load) angleAt(at time.Duration) float64 { return 2*math.Pi*at.Seconds()/l.period + l.phase }

// valueAt returns the load at a time after the boot.
func (l load) valueAt(sinceBoot time.Duration) float64 {
	return l.mean + l.swing*math.Sin(l.angleAt(sinceBoot))
}

// totalUntil returns the sum of the load over all seconds since the boot, which never decreases.
func (l load) totalUntil(sinceBoot time.Duration) float64 {
	return l.mean*sinceBoot.Seconds() + l.swing*l.period/(2*math.Pi)*(math.Cos(l.angleAt(0))-math.Cos(l.angleAt(sinceBoot)))
}
