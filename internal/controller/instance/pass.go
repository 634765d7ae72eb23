package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/places"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/metric"
)

// PassLimit is how long one pass over an instance may take. What a pass waits for has limits of its own, but one after
// another they could take days. It is far below the time after which the operator as a whole counts as stuck.
const PassLimit = 3 * time.Hour

// slowAttempt is how long an attempt that fails may keep a worker waiting before its host counts as slow: see package
// places. A refused connection takes milliseconds.
const slowAttempt = 5 * time.Second

// placeRecheck is how often an instance without a place looks, besides when it is woken.
const placeRecheck = time.Minute

// errPassLimit is the cause that ends what a pass does when it has taken too long.
var errPassLimit = fmt.Errorf("the operator worked on the host for %s without finishing: %w", PassLimit,
	context.DeadlineExceeded)

// limited returns a context that ends with PassLimit.
func (r *Reconciler) limited(ctx context.Context) (limited context.Context, end func()) {
	limited, cancel := context.WithCancelCause(ctx)
	timer := r.Clock.NewTimer(PassLimit)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(errPassLimit)
		case <-limited.Done():
		}
	}()
	return limited, func() { cancel(nil) }
}

// tookTooLong returns the obstacle of a pass that was ended by its limit, in place of the one that followed from that.
func tookTooLong(o *obstacle.Obstacle) *obstacle.Obstacle {
	if o.Outcome == obstacle.NothingToDo {
		return o
	}
	return &obstacle.Obstacle{
		Phase: o.Phase, Condition: o.Condition, Reason: v1alpha1.ReasonTookTooLong, KeepsTurn: o.KeepsTurn,
		Message: fmt.Sprintf("The operator worked on the host for %d hours without finishing, and stopped.",
			int(PassLimit.Hours())),
		Next: "The operator tries again; completed steps are not repeated. Check the host's load, its disk, and its network.",
	}
}

// leastWork is how long a phase takes at least if it does something: with less it has only looked at what is in memory.
const leastWork = 100 * time.Millisecond

// timed runs a phase, and measures it.
func (r *Reconciler) timed(ctx context.Context, p phase, s *scope.Scope) *obstacle.Obstacle {
	begin := r.Clock.Now()
	o := p.run(ctx, s)
	if took := r.Clock.Since(begin); took >= leastWork {
		metric.PhaseDuration.Of(p.name).Observe(took.Seconds())
	}
	return o
}

// takePlace reports whether the host may be worked on now: see package places. What can be done without a connection
// needs no place.
func (r *Reconciler) takePlace(s *scope.Scope) bool {
	kind := places.KindOf(s.Instance.Status.Version != "", s.Session.Slow)
	if !connects(s.Instance) {
		kind = places.Proven
	}
	return r.places.Take(s.Instance.Name, kind)
}

// connects reports whether a pass over the instance may connect to its host.
func connects(instance *v1alpha1.WindowsInstance) bool {
	switch instance.Spec.DesiredState {
	case v1alpha1.DesiredStateUnmanaged:
		return false
	case v1alpha1.DesiredStateRemoved:
		return instance.Spec.Source.Machine == nil && instance.Annotations[v1alpha1.AnnotationForgetHost] != "true"
	}
	return !instance.Spec.Paused
}

// isSlow reports whether a pass has failed, and its host kept a worker waiting before.
func isSlow(s *scope.Scope, took time.Duration) bool {
	failed := s.Unreached || s.Obstacle != nil && s.Obstacle.Outcome.IsFailure()
	return failed && took > slowAttempt
}

// tellNoPlace writes why nothing happens with a new instance that has no place. Of others, what the last attempt found
// stays true.
func (r *Reconciler) tellNoPlace(ctx context.Context, rooms *rooms, s *scope.Scope) error {
	if s.Instance.Status.ObservedGeneration != 0 {
		return nil
	}
	s.Obstacle = &obstacle.Obstacle{
		Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonWaiting, Outcome: obstacle.Wait,
		KeepsTurn: true, After: placeRecheck,
		Message: "The operator works on as many new hosts at once as it may.",
		Next:    "The operator connects to this host when the work on another one has ended.",
	}
	return rooms.status.Finish(ctx, s)
}
