// Package status writes what people read in the status of an instance: its conditions, its summary, what happens next,
// and the progress of a step. No other package of the controller writes these, and nothing decides by them. The typed
// fields of the status, which decisions do read, are set where their facts are found.
package status

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/backoff"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Writer writes the status of instances.
type Writer struct {
	Client    client.Client
	Live      client.Reader // reads the API server
	Events    event.Recorder
	Clock     clock.PassiveClock
	Namespace string // of the instances
	Version   string // of the operator
	// Pace limits how often the progress of all hosts together is written; nil for no limit.
	Pace *Pace
}

// Finish computes the whole status at the end of a reconcile, and writes it if it differs.
func (w Writer) Finish(ctx context.Context, s *scope.Scope) error {
	if s.Silent {
		return nil
	}
	status := &s.Instance.Status
	status.ObservedGeneration = s.Instance.Generation
	w.summarize(ctx, s, s.Obstacle)
	if s.Obstacle == nil || s.Obstacle.Outcome == obstacle.NothingToDo || s.Obstacle.Outcome.IsFailure() {
		status.Step = nil
	}
	if !s.RetryAt.IsZero() {
		status.NextAction = fmt.Sprintf("%s The operator tries again at %s.", status.NextAction,
			s.RetryAt.UTC().Format("15:04:05 UTC"))
	}
	return w.patch(ctx, s, withoutSummary(s), retry.DefaultBackoff)
}

// Show writes an obstacle that this reconcile is about to remove.
func (w Writer) Show(ctx context.Context, s *scope.Scope, o *obstacle.Obstacle) error {
	w.summarize(ctx, s, o)
	return w.patch(ctx, s, withoutSummary(s), retry.DefaultBackoff)
}

// withoutSummary returns the last written instance without what summarize computes, so that a patch has all of it: an
// operator that no longer leads may have written in the meantime, and a mixture of both would be true of no time.
func withoutSummary(s *scope.Scope) *v1alpha1.WindowsInstance {
	stored := s.Stored.DeepCopy()
	stored.Status.Conditions, stored.Status.Readiness, stored.Status.Summary = nil, nil, ""
	stored.Status.NextAction = s.Instance.Status.NextAction + "?" // differs also when there is none, which a patch must say
	return stored
}

// summarize computes the conditions, and tells when other hosts have the host's key.
func (w Writer) summarize(ctx context.Context, s *scope.Scope, o *obstacle.Obstacle) {
	status := &s.Instance.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	told := ""
	if before != nil {
		told = before.Message
	}
	upToDate := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionUpToDate)
	summarize(status, s.Passed, o, s.Instance.Generation, w.Clock.Now())
	status.Readiness = readiness(status, upToDate, w.Clock.Now())
	w.remember(s, o)
	reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	if reachable.Status != metav1.ConditionTrue {
		return
	}
	reuse := w.hostKeyReuse(ctx, s.Instance)
	reachable.Message = nodeidentity.WithReuse(reachable.Message, reuse)
	if reuse != "" && !strings.HasSuffix(told, reuse) {
		w.Events.Emit(event.HostKeyReused(s.Instance, reuse))
	}
}

// remember keeps what the next reconcile and other controllers decide by. They read these fields, and never conditions
// or their words.
func (w Writer) remember(s *scope.Scope, o *obstacle.Obstacle) {
	status := &s.Instance.Status
	if o == nil {
		o = &obstacle.Obstacle{Outcome: obstacle.NothingToDo}
	}
	if o.Outcome == obstacle.LeftAlone {
		return // nobody looks
	}
	status.WaitsForTurn, status.KeyRefused, status.AwaitsVersion = o.AtGate, o.KeyRefused, ""
	if o.Replaces {
		status.AwaitsVersion = w.Version
	}
}

// readiness returns the state of the conditions as decisions read it. upToDate is what UpToDate was before.
func readiness(status *v1alpha1.WindowsInstanceStatus, upToDate bool, now time.Time) *v1alpha1.Readiness {
	ready := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
	broughtUpToDate := !upToDate && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionUpToDate)
	if status.Readiness == nil || status.Readiness.Ready != ready || ready && broughtUpToDate {
		return &v1alpha1.Readiness{Ready: ready, Since: metav1.NewTime(now)}
	}
	return status.Readiness
}

// Patch writes what differs from the last written status, and nothing when nothing does.
func (w Writer) Patch(ctx context.Context, s *scope.Scope) error {
	return w.patch(ctx, s, s.Stored, retry.DefaultBackoff)
}

// PatchUnchanged is Patch for an instance that nobody has changed since this reconcile last read or wrote it. Otherwise
// the API server answers with a conflict.
func (w Writer) PatchUnchanged(ctx context.Context, s *scope.Scope) error {
	return w.patch(ctx, s, s.Stored, wait.Backoff{Steps: 1})
}

// patch writes the differences from a base with the version of the instance that this reconcile has read or written last.
// The version is what keeps the write out of another instance of the same name: the API server ignores a UID in a patch
// of the status of a custom resource. After a conflict with another writer of the same instance it tries again.
func (w Writer) patch(ctx context.Context, s *scope.Scope, base *v1alpha1.WindowsInstance, attempts wait.Backoff) error {
	if reflect.DeepEqual(s.Stored.Status, s.Instance.Status) {
		return nil
	}
	// A reconcile that was stopped still tells what it did.
	s.Session.LastWrite = w.Clock.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	base = base.DeepCopy()
	var written *v1alpha1.WindowsInstance
	conflicts := 0
	err := backoff.Again(attempts, func(err error) bool { return apierrors.IsConflict(err) && !s.Silent }, func() error {
		if conflicts++; conflicts > 1 {
			if err := w.refreshVersion(ctx, s, base); err != nil {
				return err
			}
		}
		written = s.Instance.DeepCopy()
		return w.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status of WindowsInstance %s for host %s: %w", s.Instance.Name,
			s.Instance.Spec.Address, err))
	}
	status := s.Instance.Status
	s.Stored = written
	s.Instance = written.DeepCopy()
	s.Instance.Status = status
	return nil
}

// refreshVersion gives the base of a write the present version of the instance. If the instance was deleted and another
// one has its name, this reconcile writes nothing more.
func (w Writer) refreshVersion(ctx context.Context, s *scope.Scope, base *v1alpha1.WindowsInstance) error {
	present := &v1alpha1.WindowsInstance{}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(base), present); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	if present.UID != base.UID {
		s.Silent = true
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("windowsinstances").GroupResource(), base.Name,
			fmt.Errorf("the instance with UID %s was deleted, and UID %s has its name", base.UID, present.UID))
	}
	base.ResourceVersion = present.ResourceVersion
	return nil
}
