package daemon

import (
	"maps"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// repairBackoff limits the rate of repeated repairs, for example of a program that exits at its start.
type repairBackoff struct {
	tries map[string]time.Time // time of the last try of each step
	delay time.Duration        // delay of the next comparison caused by a change
	next  time.Time            // earliest time of a comparison caused by a change
}

// recordSteps records steps that were completed or have failed. The delay doubles while a step recurs, up to the
// interval between two comparisons without a change.
func (p *repairBackoff) recordSteps(steps []string, now time.Time) {
	if len(steps) == 0 {
		return
	}
	maps.DeleteFunc(p.tries, func(_ string, at time.Time) bool { return now.Sub(at) >= timeouts.BackoffResetDelay })
	again := slices.ContainsFunc(steps, func(step string) bool { _, known := p.tries[step]; return known })
	p.delay = min(max(2*p.delay, timeouts.DriftPollInterval), timeouts.DriftCheckInterval)
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
