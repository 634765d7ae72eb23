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
	KindGiveBack    Kind = "GiveBack"
	KindDrain       Kind = "Drain"
	KindSign        Kind = "Sign"
	KindResolve     Kind = "Resolve"
)

// onHost reports whether jobs of the kind work on the host.
func (k Kind) onHost() bool { return k != KindDrain && k != KindSign && k != KindResolve }

// changesHost reports whether jobs of the kind change the host.
func (k Kind) changesHost() bool {
	switch k {
	case KindApply, KindRollback, KindGiveBack, KindReboot, KindRenew, KindCommit:
		return true
	}
	return false
}

// limits are how long jobs may take, from when they have their slots. What they wait for has limits of its own in package
// remote.
var limits = map[Kind]time.Duration{
	KindConnect: 4 * time.Minute, KindFacts: 20 * time.Minute, KindPlan: 30 * time.Minute, KindVerify: 30 * time.Minute,
	KindApply: 150 * time.Minute, KindRollback: 150 * time.Minute, KindGiveBack: 150 * time.Minute,
	KindCommit: 20 * time.Minute, KindRenew: 20 * time.Minute, KindReboot: 5 * time.Minute, KindFindRemains: 5 * time.Minute,
	KindDrain: 35 * time.Second, KindSign: 15 * time.Second, KindResolve: 15 * time.Second,
}

// Key identifies the work of a job: the same key means the same work on the same input.
type Key struct {
	Kind  Kind
	Input string
}

// Step is what a job does at present.
type Step struct {
	Name, Detail string
	Index, Of    int
	// Waits is true for a step that no later report may follow for long.
	Waits bool
}

// Job is slow work for an instance.
type Job struct {
	Key
	Limit time.Duration
	// Show is what the status says while the job runs.
	Show *result.Result
	over *remote.Connection
	run  func(context.Context, *Handle) (any, error)
}

// Wanted is the part of an instance for which a job is started. A difference stops the job.
type Wanted struct {
	UID          types.UID
	DesiredState v1alpha1.DesiredState
	// OfMachine is true for the host of a Machine, which goes with it.
	Paused, OfMachine bool
	Address, User     string
	wasNode           bool
}

// WantedOf returns what is wanted of the host of an instance.
func WantedOf(instance *v1alpha1.WindowsInstance) Wanted {
	return Wanted{
		UID: instance.UID, DesiredState: instance.Spec.DesiredState, Paused: instance.Spec.Paused,
		OfMachine: instance.Spec.Source.Machine != nil, Address: instance.Spec.Address, User: instance.Spec.Username,
		wasNode: instance.Status.Version != "",
	}
}

// Unwanted returns why a job that was started for w is not wanted any more; nil if it is.
func (w Wanted) Unwanted(now Wanted) error {
	now.wasNode = w.wasNode
	leaves := w.DesiredState == v1alpha1.DesiredStateNode && now.DesiredState != v1alpha1.DesiredStateNode
	switch {
	case w == now, w.Paused && w.sameBut(now):
		return nil
	case w.OfMachine && (leaves || w.UID != now.UID):
		return ErrGone
	}
	return ErrSuperseded
}

// sameBut reports whether only the pause was ended.
func (w Wanted) sameBut(now Wanted) bool {
	w.Paused = now.Paused
	return w == now
}

// Progress is a running job.
type Progress struct {
	Key    Key
	Wanted Wanted
	Show   *result.Result
	Began  time.Time
	Step   Step
	// Stopped is why the job is not wanted any more; nil if it is.
	Stopped error
}

// Handle is what a job may do with its own run.
type Handle struct {
	runner *Runner
	name   types.NamespacedName
	run    *run
	class  class
}

// Changing begins the part of a job that is not cut off because something else is wanted. It fails if something else is
// wanted already.
func (h *Handle) Changing() error {
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	if h.run.stopped != nil {
		return h.run.stopped
	}
	h.run.changing = true
	return nil
}

// reportInterval is how often the loop is woken for the progress of a job.
const reportInterval = 5 * time.Second

// Report notes the step that the job does. The loop shows it at a pace that people can follow, and at once if it waits.
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
