package hostjobs

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Kind is the kind of a job.
type Kind string

// The kinds of jobs. The last three do not work on the host.
const (
	KindConnect     Kind = "Connect"
	KindFacts       Kind = "Facts"
	KindPlan        Kind = "Plan"
	KindApply       Kind = "Apply"
	KindVerify      Kind = "Verify"
	KindCommit      Kind = "Commit"
	KindRollback    Kind = "Rollback"
	KindRenew       Kind = "Renew"
	KindReboot      Kind = "Reboot"
	KindFindRemains Kind = "FindRemains"
	KindRestore     Kind = "Restore"
	KindDrain       Kind = "Drain"
	KindSign        Kind = "Sign"
	KindResolve     Kind = "Resolve"
)

// isOnHost reports whether jobs of the kind work on the host.
func (k Kind) isOnHost() bool { return k != KindDrain && k != KindSign && k != KindResolve }

// isHostChange reports whether jobs of the kind change the host.
func (k Kind) isHostChange() bool {
	switch k {
	case KindApply, KindRollback, KindRestore, KindReboot, KindRenew, KindCommit:
		return true
	}
	return false
}

// timeoutByKind are the maximum durations of jobs, measured from the acquisition of their slots. Package remote has
// separate limits for the individual operations.
var timeoutByKind = map[Kind]time.Duration{
	KindConnect: 4 * time.Minute, KindFacts: 20 * time.Minute, KindPlan: 30 * time.Minute, KindVerify: 30 * time.Minute,
	KindApply: 150 * time.Minute, KindRollback: 150 * time.Minute, KindRestore: 150 * time.Minute,
	KindCommit: 20 * time.Minute, KindRenew: 20 * time.Minute, KindReboot: 5 * time.Minute, KindFindRemains: 5 * time.Minute,
	KindDrain: 35 * time.Second, KindSign: 15 * time.Second, KindResolve: 15 * time.Second,
}

// Key identifies the work of a job: the same key means the same work on the same input.
type Key struct {
	Kind  Kind
	Input string
}

// Step is the current step of a job.
type Step struct {
	Name, Detail string
	Index, Total int
	// Waits is true for a step that may last long without another report.
	Waits bool
}

// Job is slow work for an instance.
type Job struct {
	Key
	Timeout time.Duration
	// Show is the result for the status while the job runs.
	Show       *result.Result
	connection *remote.Connection
	run        func(context.Context, *Handle) (any, error)
}

// DesiredHost is the desired state at the start of a job. The job is stopped when the desired state differs.
type DesiredHost struct {
	UID          types.UID
	DesiredState v1alpha1.DesiredState
	// HasMachine is true for the host of a Machine. The host is deleted with the Machine.
	Paused, HasMachine bool
	Address, User      string
	wasNode            bool
}

// DesiredHostOf returns the desired state of the host of an instance.
func DesiredHostOf(instance *v1alpha1.WindowsInstance) DesiredHost {
	return DesiredHost{
		UID: instance.UID, DesiredState: instance.Spec.DesiredState, Paused: instance.Spec.Paused,
		HasMachine: instance.Spec.Source.Machine != nil, Address: instance.Spec.Address, User: instance.Spec.Username,
		wasNode: instance.Status.Version != "",
	}
}

// StopCause returns the cause for stopping a job that was started for w; nil if the job is still desired.
func (w DesiredHost) StopCause(now DesiredHost) error {
	now.wasNode = w.wasNode
	leaves := w.DesiredState == v1alpha1.DesiredStateNode && now.DesiredState != v1alpha1.DesiredStateNode
	switch {
	case w == now, w.Paused && w.isSameExceptPause(now):
		return nil
	case w.HasMachine && (leaves || w.UID != now.UID):
		return ErrGone
	}
	return ErrSuperseded
}

// isSameExceptPause reports whether nothing but the pause differs.
func (w DesiredHost) isSameExceptPause(now DesiredHost) bool {
	w.Paused = now.Paused
	return w == now
}

// Progress is a running job.
type Progress struct {
	Key     Key
	Desired DesiredHost
	Show    *result.Result
	Began   time.Time
	Step    Step
	// Stopped is the cause for stopping the job; nil if the job is still desired.
	Stopped error
}

// Handle gives a job access to its own run.
type Handle struct {
	runner *Runner
	name   types.NamespacedName
	run    *run
	class  class
}

// BeginChange begins the part of a job that a new desired state does not interrupt. It fails if the desired state
// has already changed.
func (h *Handle) BeginChange() error {
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	if h.run.stopped != nil {
		return h.run.stopped
	}
	h.run.changing = true
	return nil
}

// reportInterval is the minimum interval between reconciles for the progress of a job.
const reportInterval = 5 * time.Second

// Report records the current step of the job. It requests a reconcile at most once per reportInterval, or at once
// if the step waits.
func (h *Handle) Report(step Step) {
	r := h.runner
	r.mu.Lock()
	now := r.clock.Now()
	h.run.step = step
	due := step.Waits || now.Sub(h.run.shown) >= reportInterval
	if due {
		h.run.shown = now
	}
	r.mu.Unlock()
	if due {
		r.Trigger(h.name)
	}
}
