package hostjobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Known is the operator's knowledge of a host during a connection. All of it can be lost.
type Known struct {
	// Connection is the connection that provided the other fields; nil for none.
	Connection *remote.Connection
	// Agent is the path of the agent on the host; empty if it is unknown.
	Agent string
	// Facts are the most recent facts reported by the host.
	Facts *plan.Facts
	// Planned is the most recent result of Plan.
	Planned *Planned
	// AppliedDigest is the digest of the NodeSpec of the last apply. RemainingPlan is the part of the plan that the
	// apply could not do. AppliedAt is the end of the apply.
	AppliedDigest string
	AppliedAt     time.Time
	RemainingPlan plan.Plan
	// IssuedCertificates are the certificates signed since the last apply, by the names of their identities.
	IssuedCertificates map[string]string
	// Verified is the most recent result of Verify since the last change; nil if there is none.
	Verified *agentapi.Result
	// KubeletPortError is the error of the connection to the kubelet's port during Verify; nil if the connection
	// succeeded.
	KubeletPortError error
	// ClockRead is true after ReadClock.
	ClockRead bool
	// Remains is the result of FindRemains; nil before that.
	Remains *Remains
	// Restored is true after the host was restored.
	Restored bool
}

func (k *Known) isEmpty() bool { return k.Connection == nil && !k.Restored }

// ForgetState drops the known state of the host before a change.
func (k *Known) ForgetState() {
	k.Facts, k.Planned, k.AppliedDigest, k.RemainingPlan, k.IssuedCertificates, k.Verified, k.KubeletPortError, k.Remains = nil, nil, "", plan.Plan{}, nil, nil, nil, nil
	k.ClockRead = false
}

// ForgetHost drops everything learned over a closed connection.
func (k *Known) ForgetHost() { *k = Known{Restored: k.Restored} }

// KubeletStarted returns the start time of the kubelet by the host's clock, reported by Verify; zero if unknown.
func (k *Known) KubeletStarted() time.Time {
	if k.Verified == nil {
		return time.Time{}
	}
	return k.Verified.KubeletStarted
}

// Host is the view of a host for one reconcile. Each method returns the result of a job that has ended, or the
// result that ends the reconcile: work in progress, or a failure. Requested jobs start only when the reconcile is
// committed.
type Host struct {
	Known
	runner    *Runner
	name      types.NamespacedName
	desired   DesiredHost
	running   *Progress
	ended     *outcome
	used      bool // whether the outcome was used
	requested *Job
	close     bool
}

// RunningJob returns the job that runs for the instance; nil for none.
func (h *Host) RunningJob() *Progress { return h.running }

// HasRequestedJob reports whether the reconcile requests a job.
func (h *Host) HasRequestedJob() bool { return h.requested != nil }

// HasRequestedChange reports whether the requested job changes the host.
func (h *Host) HasRequestedChange() bool {
	return h.requested != nil && h.requested.Kind.isHostChange()
}

// HasOutcomeExcept reports whether a job of another kind has just ended. The outcome is lost if the reconcile requests
// another job before using the outcome.
func (h *Host) HasOutcomeExcept(but ...Kind) bool {
	return h.ended != nil && !slices.Contains(but, h.ended.key.Kind)
}

// shouldKeepOutcome reports whether to keep the outcome of the last job for a later reconcile, because this one has
// not reached the phase of the job. The outcome of a change outlives its connection, which a restart of the host
// closes. Other outcomes are read again.
func (h *Host) shouldKeepOutcome(now time.Time) bool {
	if h.ended == nil || h.used || h.requested != nil || now.Sub(h.ended.at) >= outcomeTTL {
		return false
	}
	return h.ended.connection == nil || h.ended.connection.IsAlive() || h.ended.key.Kind.isHostChange()
}

// Close drops the connection and everything learned over it.
func (h *Host) Close() {
	h.ForgetHost()
	h.close = true
}

// Before runs before a job is requested. It returns nil, or the reason why the job must wait.
type Before func() *result.Result

// Do returns the result of a job that has ended, or requests the job. The job is slow work outside the host.
func Do[T any](h *Host, key Key, show *result.Result, run func(context.Context, *Handle) (T, error)) (T, *result.Result, error) {
	return DoAfter(h, key, show, nil, run)
}

// DoAfter is Do with a function that runs before the job is requested; nil for none.
func DoAfter[T any](h *Host, key Key, show *result.Result, before Before, run func(context.Context, *Handle) (T, error)) (T, *result.Result, error) {
	if ended := h.ended; ended != nil && ended.key == key {
		h.used = true
		answer, _ := ended.answer.(T)
		return answer, nil, ended.err
	}
	if before != nil {
		if o := before(); o != nil {
			var none T
			return none, o, nil
		}
	}
	if h.requested == nil { // the first job that ends the reconcile
		h.requested = &Job{Key: key, Timeout: timeoutByKind[key.Kind], Show: show, run: func(ctx context.Context, handle *Handle) (any, error) {
			return run(ctx, handle)
		}}
	}
	var none T
	return none, show, nil
}

// errStale means that the connection was lost between the reconcile and its job. It is not a failure: the next
// reconcile reconnects.
var errStale = errors.New("the connection was closed meanwhile")

// doOverConnection is DoAfter for work over the connection of the host.
func doOverConnection[T any](h *Host, kind Kind, input string, show *result.Result, before Before,
	run func(context.Context, *session) (T, error)) (T, *result.Result, error) {
	connection, runner, agent := h.Connection, h.runner, h.Agent
	key := Key{kind, fmt.Sprintf("%p %s", connection, input)}
	answer, pending, err := DoAfter(h, key, show, before, func(ctx context.Context, handle *Handle) (answer T, err error) {
		if !runner.hosts.TryHold(connection) {
			return answer, errStale
		}
		defer runner.hosts.Release(connection)
		return run(ctx, &session{Handle: handle, connection: connection, payload: runner.payload, agent: agent})
	})
	if h.requested != nil && h.requested.Key == key {
		h.requested.connection = connection
	}
	return answer, pending, err
}

// workingResult returns the result for the status while a job runs.
func workingResult(condition, step string) *result.Result {
	return &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, HoldsSlot: true, Step: step, StatusDelay: jobStatusDelay,
		Message: "The operator is working on the host.", NextAction: "The operator waits for the step " + step + " on the host.",
	}
}

// jobStatusDelay is the time before the status reports a running job.
const jobStatusDelay = 5 * time.Second
