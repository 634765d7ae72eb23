package daemon

import (
	"maps"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// pacer keeps the service from trying the same repairs over and over as fast as it can, for a program that ends at its
// start, say.
type pacer struct {
	tries map[string]time.Time // when each step was last tried
	delay time.Duration        // until the next comparison because of a change
	next  time.Time            // not before which a change leads to a comparison
}

// tried notes steps that were done or have failed. The delay doubles while one of them comes again, up to the time
// between two comparisons without a change.
func (p *pacer) tried(steps []string, now time.Time) {
	if len(steps) == 0 {
		return
	}
	maps.DeleteFunc(p.tries, func(_ string, at time.Time) bool { return now.Sub(at) >= timeouts.PaceReset })
	again := slices.ContainsFunc(steps, func(step string) bool { _, known := p.tries[step]; return known })
	p.delay = min(max(2*p.delay, timeouts.DriftPoll), timeouts.DriftCheck)
	if !again {
		p.delay = 0
	}
	p.next = now.Add(p.delay)
	if p.tries == nil {
		p.tries = map[string]time.Time{}
	}
	for _, step := range steps {
		p.tries[step] = now
	}
}
