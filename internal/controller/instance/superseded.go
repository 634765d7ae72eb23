package instance

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// superseded reports whether something else is wanted of the host than what this reconcile works on: the instance was
// deleted and made again, for another host perhaps, or something else is wanted of a Machine's host, because its Machine
// is being deleted, say. Other work on a listed host goes on to where it would stop anyway.
func (r *Reconciler) superseded(ctx context.Context, instance *v1alpha1.WindowsInstance) bool {
	present := r.present(ctx, instance)
	return present.UID != instance.UID || instance.Spec.Source.Machine != nil &&
		present.Generation > instance.Generation && present.Spec.DesiredState != instance.Spec.DesiredState
}

// present returns the instance as it is in memory; as it was read when it is not there: the phases find out for
// themselves.
func (r *Reconciler) present(ctx context.Context, instance *v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	present := &v1alpha1.WindowsInstance{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(instance), present); err != nil {
		return instance
	}
	return present
}

// standBack ends a reconcile that was superseded. What it learnt is kept, unless it is of an earlier instance; what was
// cut off is no failure. The change that superseded it has asked for the next reconcile.
func (r *Reconciler) standBack(ctx context.Context, rooms *rooms, s *scope.Scope,
	instance *v1alpha1.WindowsInstance) error {
	rooms.link.LetGo(s)
	s.Session.Attempts, s.Session.Waiting, s.Session.Drains = 0, "", time.Time{}
	if r.present(ctx, instance).UID != instance.UID {
		return nil
	}
	s.Instance.Status.Step = nil
	return errors.Join(r.Gate.Release(ctx, instance.Name), rooms.status.Patch(ctx, s))
}
