package status

import (
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// The limits of progress writes for all hosts together. If a hundred hosts join at once, their progress would be
// a quarter of all writes of the operator, for few readers. A burst of maxProgressBurst is allowed. A waiting step
// and each condition are always written.
const (
	progressPerSecond = 1
	maxProgressBurst  = 16
)

// ProgressLimiter limits the rate of progress writes for all hosts together. The zero value is ready to use.
type ProgressLimiter struct {
	once    sync.Once
	limiter flowcontrol.PassiveRateLimiter
}

// tryAccept reports whether progress may be written now, and counts that write. A nil ProgressLimiter has no limit.
func (p *ProgressLimiter) tryAccept(clock clock.PassiveClock) bool {
	if p == nil {
		return true
	}
	p.once.Do(func() {
		p.limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(progressPerSecond, maxProgressBurst, clock)
	})
	return p.limiter.TryAccept()
}
