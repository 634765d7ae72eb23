package support

import (
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

const (
	// maxClockSkew is the maximum difference between a host's clock and the operator's clock when the host becomes a
	// node. Kubernetes backdates a certificate by five minutes: on a host that is further behind, a new certificate
	// is not valid yet. A clock that is ahead ends certificates and tokens early, and gives the node's logs and
	// events wrong times.
	maxClockSkew = 5 * time.Minute
	// maxSkewWithoutAdvice is the maximum difference without advice. Time synchronization keeps a clock within seconds.
	maxSkewWithoutAdvice = time.Minute
)

// ClockRemedy is the remedy for a wrong clock.
const ClockRemedy = "Correct the clock and enable time synchronization on the host: w32tm /query /status shows the time source. " +
	"A virtual machine may have its time from a hypervisor whose hardware clock shows local time."

// ClockReading is the time that a host has reported, with the operator's time before and after the request. The zero
// value is no reading.
type ClockReading struct {
	Host, RequestedAt, RespondedAt time.Time
}

// Skew returns the lead of the host's clock over the operator's clock, negative if the host is behind. The host may
// have read its clock at any moment of the call, so this is the smallest difference that explains the reading.
func (r ClockReading) Skew() time.Duration {
	switch {
	case r.Host.IsZero():
		return 0
	case r.Host.Before(r.RequestedAt):
		return r.Host.Sub(r.RequestedAt)
	case r.Host.After(r.RespondedAt):
		return r.Host.Sub(r.RespondedAt)
	}
	return 0
}

// SupportClock decides whether a host with this clock may become a node.
func SupportClock(reading ClockReading) policy.Decision {
	if reading.Skew().Abs() <= maxClockSkew {
		return policy.Decision{Allowed: true}
	}
	return policy.Decision{
		Check: "ClockSkew", Reason: v1alpha1.ReasonClockSkew,
		Message: fmt.Sprintf("The %s A difference of up to %s is allowed.", reading.describeSkew(),
			policy.ShortDuration(maxClockSkew)),
	}
}

// ClockAdvice returns advice for an administrator about the clock of a host that is a node, as the second half of a
// sentence; empty if the clock is right.
func ClockAdvice(reading ClockReading) string {
	if reading.Skew().Abs() <= maxSkewWithoutAdvice {
		return ""
	}
	return "the " + reading.describeSkew() + " " + ClockRemedy
}

// describeSkew returns both times and the difference, to be used after an article.
func (r ClockReading) describeSkew() string {
	const form = "2006-01-02 15:04:05 UTC"
	skew, other, where := r.Skew(), r.RespondedAt, "ahead"
	if skew < 0 {
		other, where = r.RequestedAt, "behind"
	}
	return fmt.Sprintf("host's clock shows %s and the operator's %s: the host's clock is %s %s.",
		r.Host.UTC().Format(form), other.UTC().Format(form), formatSkew(skew.Abs()), where)
}

// formatSkew formats a difference between two clocks for messages.
func formatSkew(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day {
		return fmt.Sprintf("%d days", d.Round(day)/day)
	}
	return policy.ShortDuration(d.Round(time.Second))
}
