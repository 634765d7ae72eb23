package hostjobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Known is what the operator knows of a host while it has a connection to it. All of it can be lost.
type Known struct {
	// Connection is the connection that the rest was learned over; nil for none.
	Connection *remote.Connection
	// Agent is the path of the agent on the host; empty if it was not looked for.
	Agent string
	// Facts are the last that the host has reported.
	Facts *plan.Facts
	// Planned is the last answer of Plan.
	Planned *Planned
	// Applied is the digest of the NodeSpec that the last apply was given, Left what it could not do yet, and AppliedAt when it ended.
	Applied   string
	AppliedAt time.Time
	Left      plan.Plan
	// Issued are the certificates that were signed since, by the names of their identities.
	Issued map[string]string
	// Verified is the last answer of Verify since the last change; nil if there is none.
	Verified *verb.Result
	// LogsPort is why the kubelet's port could not be connected to then; nil if it could.
	LogsPort error
	// ClockRead is true after ReadClock.
	ClockRead bool
	// Remains is what a removal has found on the host; nil if it has not looked.
	Remains *Remains
	// GivenBack is true after the host was given back.
	GivenBack bool
}

func (k *Known) empty() bool { return k.Connection == nil && !k.GivenBack }

// ForgetState drops the known state of the host, which is about to change.
func (k *Known) ForgetState() {
	k.Facts, k.Planned, k.Applied, k.Left, k.Issued, k.Verified, k.LogsPort, k.Remains = nil, nil, "", plan.Plan{}, nil, nil, nil, nil
	k.ClockRead = false
}

// ForgetHost drops what was learned over a connection that is gone.
func (k *Known) ForgetHost() { *k = Known{GivenBack: k.GivenBack} }

// KubeletStarted returns the time of the kubelet's start by the host's clock that Verify has reported; zero if it is not known.
func (k *Known) KubeletStarted() time.Time {
	if k.Verified == nil {
		return time.Time{}
	}
	return k.Verified.KubeletStarted
}

// Host is what a reconcile knows of its host, and what it may request of it. Each method returns the answer of a job that has
// ended, or the result that ends the reconcile: work in progress, or a failure. Nothing happens before the reconcile is
// committed.
type Host struct {
	Known
	runner    *Runner
	name      types.NamespacedName
	wanted    Wanted
	running   *Progress
	ended     *outcome
	used      bool // the outcome was
	requested *Job
	close     bool
}

// Running returns the job that runs for the instance; nil for none.
func (h *Host) Running() *Progress { return h.running }

// Requested reports whether the reconcile requests a job.
func (h *Host) Requested() bool { return h.requested != nil }

// RequestsChange reports whether the requested job changes the host.
func (h *Host) RequestsChange() bool { return h.requested != nil && h.requested.Kind.changesHost() }

// MidWork reports whether a job of another kind has just ended. Its outcome is lost if the reconcile requests another job before it
// uses the outcome.
func (h *Host) MidWork(but ...Kind) bool {
	return h.ended != nil && !slices.Contains(but, h.ended.key.Kind)
}

// keepsOutcome reports whether the outcome of the last job is for a later reconcile: this one has not got as far as the phase that has
// requested the job. The outcome of a change outlives its connection: a host that restarts ends it. Anything else is read again.
func (h *Host) keepsOutcome(now time.Time) bool {
	if h.ended == nil || h.used || h.requested != nil || now.Sub(h.ended.at) >= outcomeLife {
		return false
	}
	return h.ended.over == nil || h.ended.over.Alive() || h.ended.key.Kind.changesHost()
}

// Close drops the connection and what was learned over it.
func (h *Host) Close() {
	h.ForgetHost()
	h.close = true
}

// Before is called if a job must be requested. It does what must precede the job, and returns nil, or why the job must wait.
type Before func() *result.Result

// Do returns the answer of a job that has ended, or requests the job: work that is slow, but not on the host.
func Do[T any](h *Host, key Key, show *result.Result, run func(context.Context, *Handle) (T, error)) (T, *result.Result, error) {
	return DoAfter(h, key, show, nil, run)
}

// DoAfter is Do with what must precede the job; nil for nothing.
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
	if h.requested == nil { // the first one that ends the reconcile
		h.requested = &Job{Key: key, Limit: limits[key.Kind], Show: show, run: func(ctx context.Context, handle *Handle) (any, error) {
			return run(ctx, handle)
		}}
	}
	var none T
	return none, show, nil
}

// errStale means that the connection was lost between the reconcile and its job. It is no failure: the next reconcile connects.
var errStale = errors.New("the connection has ended in the meantime")

// over is Do for work over the connection of the host.
func over[T any](h *Host, kind Kind, input string, show *result.Result, before Before,
	run func(context.Context, *session) (T, error)) (T, *result.Result, error) {
	connection, runner, agent := h.Connection, h.runner, h.Agent
	key := Key{kind, fmt.Sprintf("%p %s", connection, input)}
	answer, pending, err := DoAfter(h, key, show, before, func(ctx context.Context, handle *Handle) (answer T, err error) {
		if !runner.hosts.Hold(connection) {
			return answer, errStale
		}
		defer runner.hosts.Release(connection)
		return run(ctx, &session{Handle: handle, connection: connection, payload: runner.payload, agent: agent})
	})
	if h.requested != nil && h.requested.Key == key {
		h.requested.over = connection
	}
	return answer, pending, err
}

// working returns what the status says while a job runs.
func working(condition, step string) *result.Result {
	return &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, KeepsTurn: true, Step: step, Quiet: quietWork,
		Message: "The operator works on the host.", Next: "The operator waits for the step " + step + " on the host.",
	}
}

// quietWork is how long work takes before the status shows it.
const quietWork = 5 * time.Second
