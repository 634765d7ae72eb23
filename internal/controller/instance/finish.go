package instance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// finishReconcile ends a reconcile after the write of the status: it releases the disruption slot, stores the session
// and the knowledge of the host, records the events, and starts the job. None of these happen if the decision to
// start a job was based on an old version.
func (r *Reconciler) finishReconcile(ctx context.Context, rooms *dependencies, s *scope.Scope, next ctrl.Result, quiet time.Duration) (ctrl.Result, error) {
	if s.Host.HasRequestedJob() && !s.StatusWritten && !s.SkipStatusWrite {
		if current, err := r.isCurrent(ctx, s); err != nil {
			return ctrl.Result{}, err
		} else if !current {
			return r.requeueOnConflict(client.ObjectKeyFromObject(s.Instance), s.Session)
		}
	}
	if s.SlotReleasePending { // first, because after an error everything is decided again
		if err := r.Gate.Release(ctx, s.Instance.Name); err != nil {
			return ctrl.Result{}, fmt.Errorf("release the disruption slot of WindowsInstance %s: %w", s.Instance.Name, err)
		}
	}
	s.Session.Conflicts = 0
	if s.Deleted {
		rooms.events.Flush()
		r.forgetInstance(client.ObjectKeyFromObject(s.Instance))
		return ctrl.Result{}, nil
	}
	s.KeepUnwritten()
	r.sessions.Store(s.Instance.Name, s.Session)
	rooms.events.Flush()
	if s.SkipStatusWrite {
		return next, nil
	}
	if !r.Jobs.Commit(ctx, s.Instance, s.Host) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if quiet > 0 && s.Result.Outcome != result.Working { // the end of a job triggers the next reconcile
		next.RequeueAfter = identity.MinPositive(next.RequeueAfter, max(quiet, minRequeueDelay))
	}
	return next, nil
}

// NodeWaitStatusDelay is the time that the operator waits for a Node before the status reports the wait. A kubelet
// registers, gets its pod subnet and reports within seconds.
const NodeWaitStatusDelay = 10 * time.Second

// ListWaitTimeout is the time that a reconcile waits for a list from the API server. The list of a fleet takes
// longer. The reconciles that need the list then wait without a worker.
const ListWaitTimeout = 50 * time.Millisecond

// minRequeueDelay is the minimum delay requested from controller-runtime, because a zero delay does not requeue.
const minRequeueDelay = 10 * time.Millisecond

// maxVersionAge is the maximum age of the last seen version of an object to count as current.
const maxVersionAge = time.Second

// isCurrent reports whether the reconcile has used the current version of the instance, because the cache may be
// stale. The check precedes a job that changes the host and the first job on a version, unless the status was
// written.
func (r *Reconciler) isCurrent(ctx context.Context, s *scope.Scope) (bool, error) {
	now := r.Clock.Now()
	if s.Session.LiveVersion == s.Stored.ResourceVersion && (!s.Host.HasRequestedChange() || now.Sub(s.Session.LiveVersionAt) < maxVersionAge) {
		return true, nil
	}
	present := &v1alpha1.WindowsInstance{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Instance), present); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if present.UID != s.Instance.UID || present.ResourceVersion != s.Stored.ResourceVersion {
		return false, nil
	}
	s.Session.LiveVersion, s.Session.LiveVersionAt = present.ResourceVersion, now
	return true, nil
}

// reconcileDuringJob reconciles an instance with a running job. It stops the job if the desired state has changed,
// reverts drift on the Node, and writes progress. There is no requeue, because the delay before a retry counts from
// the end of the job, and the queue keeps the shortest delay.
func (r *Reconciler) reconcileDuringJob(ctx context.Context, rooms *dependencies, s *scope.Scope, running *hostjobs.Progress) (ctrl.Result, error) {
	if cause := running.Desired.StopCause(hostjobs.DesiredHostOf(s.Instance)); cause != nil && running.Stopped == nil {
		r.Jobs.Stop(client.ObjectKeyFromObject(s.Instance), cause)
	}
	if s.Instance.Spec.DesiredState == v1alpha1.DesiredStateNode && !s.Instance.Spec.Paused {
		if o := rooms.drift.reconcile(ctx, s); o != nil && o.Outcome != result.Working {
			log.FromContext(ctx).Info(sanitize.Plain(o.Message, maxLogMessage))
		}
	}
	if running.Desired.UID != s.Instance.UID {
		return ctrl.Result{}, nil
	}
	err := rooms.status.Progress(ctx, s, running)
	if err != nil && !apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	s.KeepUnwritten()
	r.sessions.Store(s.Instance.Name, s.Session)
	rooms.events.Flush()
	return ctrl.Result{}, nil
}
