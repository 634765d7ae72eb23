package status

import (
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// How often the progress of all hosts together is written: of a hundred that join at once, nobody follows each, and of
// all that the operator writes meanwhile it would be a quarter. Some may come at the same moment. A step that waits, and
// each condition, is written in any case.
const (
	progressPerSecond = 1
	progressAtOnce    = 16
)

// Pace limits how often the progress of all hosts together is written. The zero value works.
type Pace struct {
	once    sync.Once
	limiter flowcontrol.PassiveRateLimiter
}

// allows reports whether progress may be written now, which then counts as written; nil always does.
func (p *Pace) allows(clock clock.PassiveClock) bool {
	if p == nil {
		return true
	}
	p.once.Do(func() {
		p.limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(progressPerSecond, progressAtOnce, clock)
	})
	return p.limiter.TryAccept()
}
