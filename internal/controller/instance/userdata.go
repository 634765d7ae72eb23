package instance

import (
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

const (
	// userDataTimeout is the maximum time for the user data of a new Machine to open port 22 and to authorize the
	// key.
	userDataTimeout = 30 * time.Minute
	// minUserDataInterval and maxUserDataInterval are the shortest and the longest interval between checks of such a
	// host.
	minUserDataInterval = 2 * time.Second
	maxUserDataInterval = 15 * time.Second
)

// awaitUserData returns the wait for a new Machine's host that is not reachable yet; nil if the host was reached
// before, exceeds userDataTimeout, or fails for a reason unrelated to the user data.
func (p connectPhase) awaitUserData(s *scope.Scope, err error) *result.Result {
	status := s.Instance.Status
	if !s.HasMachine() || status.HostKey != nil || status.SpecDigest != "" || status.PublicKeyHash != "" {
		return nil
	}
	now, until := s.Clock.Now(), s.Instance.CreationTimestamp.Add(userDataTimeout)
	if !now.Before(until) {
		return nil
	}
	o := hostjobs.ResultFromConnectError(err)
	by := until.UTC().Format("15:04 UTC")
	switch {
	case hostjobs.IsKeyRejected(err):
		o.Reason, o.SSHKeyRejected = v1alpha1.ReasonUserDataInProgress, false
		o.Message = "The host responds, but does not accept the operator's key yet: its user data is still being applied. " +
			o.Message
		o.NextAction = "The operator retries every " + maxUserDataInterval.String() +
			" at the latest. If the key is not accepted by " + by + ": " + o.NextAction
	case hostjobs.IsUnreachable(err):
		o.Message = "The Machine was created recently, and its host may still be starting. " + o.Message
		o.NextAction = "The operator retries every " + maxUserDataInterval.String() +
			" at the latest. If the host is not reached by " + by + ": " + o.NextAction
	default:
		return nil
	}
	o.Outcome = result.Wait
	age := now.Sub(s.Instance.CreationTimestamp.Time)
	o.RequeueAfter = min(userDataPollInterval(age, p.jitter()), until.Sub(now))
	return o
}

// userDataPollInterval returns the delay before the next check of a host, based on the age of its instance. The delay
// is a quarter of the age, so that a fast host is detected soon. A jitter of up to a fifth is subtracted, to spread
// the checks of hosts created at the same time.
func userDataPollInterval(age time.Duration, jitter float64) time.Duration {
	poll := min(max(age/4, minUserDataInterval), maxUserDataInterval)
	return poll - time.Duration(float64(poll)*0.2*jitter)
}
