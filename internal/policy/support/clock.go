package support

import (
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

const (
	// clockLimit is how far a host's clock may be off when the host becomes a node. Kubernetes dates a certificate back by
	// five minutes: on a host whose clock is further behind, a new certificate is not valid yet. A clock that is ahead ends
	// certificates and tokens early, and gives the node's logs and events wrong times.
	clockLimit = 5 * time.Minute
	// clockAdviceLimit is how far a host's clock may be off without advice. Time synchronization keeps a clock within
	// seconds.
	clockAdviceLimit = time.Minute
)

// ClockRemedy is what an administrator does about a wrong clock.
const ClockRemedy = "Correct the clock and enable time synchronization on the host: w32tm /query /status shows the time source. " +
	"A virtual machine may have its time from a hypervisor whose hardware clock shows local time."

// ClockReading is the time that a host has reported, with the operator's time before and after it asked for that. The
// zero value is no reading.
type ClockReading struct {
	Host, Asked, Answered time.Time
}

// Skew returns how far the host's clock is ahead of the operator's, negative when it is behind. The host may have read
// its clock at any moment of the call, so this is the least difference that explains the reading.
func (r ClockReading) Skew() time.Duration {
	switch {
	case r.Host.IsZero():
		return 0
	case r.Host.Before(r.Asked):
		return r.Host.Sub(r.Asked)
	case r.Host.After(r.Answered):
		return r.Host.Sub(r.Answered)
	}
	return 0
}

// SupportClock decides whether a host with this clock may become a node.
func SupportClock(reading ClockReading) policy.Decision {
	if reading.Skew().Abs() <= clockLimit {
		return policy.Decision{Allowed: true}
	}
	return policy.Decision{
		Check: "Clock", Reason: v1alpha1.ReasonClockSkew,
		Message: fmt.Sprintf("The %s A difference of up to %s is allowed.", reading.describe(),
			policy.ShortDuration(clockLimit)),
	}
}

// ClockAdvice returns what an administrator should know about the clock of a host that is a node, as the second half of a
// sentence; empty when the clock is right.
func ClockAdvice(reading ClockReading) string {
	if reading.Skew().Abs() <= clockAdviceLimit {
		return ""
	}
	return "the " + reading.describe() + " " + ClockRemedy
}

// describe has both times, and the difference. It follows an article.
func (r ClockReading) describe() string {
	const form = "2006-01-02 15:04:05 UTC"
	skew, other, where := r.Skew(), r.Answered, "ahead"
	if skew < 0 {
		other, where = r.Asked, "behind"
	}
	return fmt.Sprintf("host's clock shows %s and the operator's %s: the host's clock is %s %s.",
		r.Host.UTC().Format(form), other.UTC().Format(form), roughly(skew.Abs()), where)
}

// roughly writes a difference between two clocks for people.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		return fmt.Sprintf("%d days", d.Round(day)/day)
	}
	return policy.ShortDuration(d.Round(time.Second))
}
