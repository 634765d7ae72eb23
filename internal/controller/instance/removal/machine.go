package removal

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// lateNodeTimeout is the time after the end of a Machine during which the kubelet's last request, the registration of
// the Node, may still arrive.
const lateNodeTimeout = 10 * time.Second

// Disconnect ends all work on a host that was deleted with its Machine. The Machine API has drained the node.
// Nothing must be restored, and a pause has no effect.
func (r *Removal) Disconnect(_ context.Context, s *scope.Scope) *result.Result {
	s.Host.Close()
	s.RequestSlotRelease()
	return nil
}

// AwaitLateNode waits for a Node that the kubelet may have registered just before the host was deleted: the kubelet
// may have a certificate, but no Node was observed yet. The previous phase deletes a Node that appears.
func (r *Removal) AwaitLateNode(_ context.Context, s *scope.Scope) *result.Result {
	ref := s.Instance.Status.NodeRef
	if ref == nil || !ref.Confirmed || ref.UID != "" {
		return nil
	}
	rest := lateNodeTimeout - r.Clock.Since(s.Session.WaitingSince("a late Node", r.Clock.Now()))
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRemoving, Outcome: result.Wait, RequeueAfter: rest,
		Message:    "The Machine no longer exists, but its kubelet may still register Node " + ref.Name + ".",
		NextAction: "The operator waits " + lateNodeTimeout.String() + " for that Node, deletes it if it appears, and then deletes this instance.",
	}
}
