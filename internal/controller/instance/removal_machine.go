package instance

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// lateNodeLimit is how long after the end of its Machine a kubelet's last request, to register its Node, may still arrive.
const lateNodeLimit = 10 * time.Second

// disconnect ends what goes on with a host that is gone with its Machine. The Machine API has drained the node; there is nothing to be
// given back, and a pause has nothing to hold up.
func (r *Reconciler) disconnect(ctx context.Context, s *scope) *obstacle {
	r.Hosts.Close(s.instance.Name)
	return s.leaveGate(ctx)
}

// awaitLateNode waits for the Node of a kubelet that could register it until its host was gone: it may have had its certificate, and no
// Node was seen yet. One that appears is deleted by the phase before this one.
func (r *Reconciler) awaitLateNode(_ context.Context, s *scope) *obstacle {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed || ref.UID != "" {
		return nil
	}
	rest := lateNodeLimit - r.Clock.Since(s.session.waitingSince("a late Node", r.Clock.Now()))
	if rest <= 0 {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonRemoving, outcome: wait, after: rest,
		message: "The Machine is gone. Its kubelet was about to register Node " + ref.Name + ", which would be left behind.",
		next:    "The operator looks for that Node for " + lateNodeLimit.String() + ", and then deletes this instance.",
	}
}
