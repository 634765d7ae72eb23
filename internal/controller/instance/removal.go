package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// untouched reports whether there is nothing to give back: the host was never changed, which it is from the moment its host key is pinned,
// or it is another instance's now.
func (s *scope) untouched() bool { return s.handedOver || s.instance.Status.HostKey == nil }

// forget reports whether an administrator has said that the host is gone for good.
func (s *scope) forget() bool { return s.instance.Annotations[v1alpha1.AnnotationForgetHost] == "true" }

// readKeyForRemoval needs the key only where the host must be reached.
func (r *Reconciler) readKeyForRemoval(ctx context.Context, s *scope) *obstacle {
	if s.untouched() || s.forget() {
		return nil
	}
	return r.readKey(ctx, s)
}

// drain moves the pods away before the node goes.
func (r *Reconciler) drain(ctx context.Context, s *scope) *obstacle {
	if s.handedOver || s.nodeName() == "" {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || (s.forget() && !isReady(node)) {
		return nil
	}
	if own, err := s.owns(ctx, node); err != nil || !own {
		return notOwn(err)
	}
	if o := s.takeRetry(ctx); o != nil {
		return o
	}
	if o := s.drainPostponed(); o != nil {
		return o
	}
	// A node that does not work is disturbed by nothing any more.
	if isReady(node) && s.released(node) {
		if o := s.acquire(ctx, node, v1alpha1.CauseRemoval); o != nil {
			o.condition, o.next = v1alpha1.ConditionReady, "The node goes on as it is, and is taken out of the cluster when its turn comes."
			return o
		}
	}
	o := s.drainNode(ctx, node, v1alpha1.CauseRemoval)
	if o != nil && !isReady(node) {
		o.next += " " + s.forgetHint()
	}
	return o
}

// drainPostponed waits when the pods did not leave in time, until the node is drained again.
func (s *scope) drainPostponed() *obstacle {
	failed := s.instance.Status.FailedChange
	if failed == nil || failed.Cause != v1alpha1.CauseRemoval || failed.RetryAfter == nil || s.session.attempts > 0 {
		return nil
	}
	rest := failed.RetryAfter.Sub(s.Clock.Now())
	if rest <= 0 {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonDrainTimedOut, outcome: wait, after: rest, message: failed.Message,
		next: "The node is drained again at " + failed.RetryAfter.UTC().Format(time.RFC3339) + ". A PodDisruptionBudget that allows no disruption must be changed by its owner.",
	}
}

// owns reports whether the Node is the instance's own and may be drained and deleted with it.
func (s *scope) owns(ctx context.Context, node *corev1.Node) (bool, error) {
	var instances v1alpha1.WindowsInstanceList
	if err := s.Live.List(ctx, &instances, client.InNamespace(s.Namespace)); err != nil {
		return false, fmt.Errorf("list WindowsInstances, whose Node %s could be: %w", node.Name, err)
	}
	return ownership.Owns(s.instance, node, instances.Items), nil
}

// notOwn leaves a Node alone, unless it could not be found out whose it is.
func notOwn(err error) *obstacle {
	if err == nil {
		return nil
	}
	return apiObstacle(v1alpha1.ConditionReady, "find out whose Node it is", err)
}

// forgetHint is how an administrator removes a node without its host.
func (s *scope) forgetHint() string {
	return fmt.Sprintf("If the host is gone for good: kubectl annotate windowsinstance %s -n %s %s=true", s.instance.Name, s.Namespace, v1alpha1.AnnotationForgetHost)
}

// reachForRemoval connects to the host, and says what to do when it is gone.
func (r *Reconciler) reachForRemoval(ctx context.Context, s *scope) *obstacle {
	if s.untouched() || s.forget() {
		return nil
	}
	if o := r.reach(ctx, s); o != nil {
		// A host that is away may be so for ever, and others are not to wait for it.
		if held := s.leaveGate(ctx); held != nil {
			return held
		}
		if o.outcome.isFailure() {
			o.next = fmt.Sprintf("%s The node stays until the host was given back. %s", o.next, s.forgetHint())
		}
		return o
	}
	return nil
}

// giveBack has the agent restore the host, restarts included, and takes the agent itself away.
func (r *Reconciler) giveBack(ctx context.Context, s *scope) *obstacle {
	if s.untouched() {
		return nil
	}
	if s.forget() {
		s.emit(hostLeftBehind(s.instance))
		return nil
	}
	dirty, err := s.changed(ctx)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	older, err := s.holdsOlder(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if dirty || older {
		if o := s.removeWithAgent(ctx); o != nil {
			return o
		}
		if s.handedOver {
			r.Hosts.Close(s.instance.Name)
			return nil
		}
	}
	if err := s.connection.Remove(ctx, nodespec.AgentRoot, nodespec.LandingRoot); err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	// The agent has left in it what was there before and nothing else. What that was, nobody can say once the ledger is gone.
	if err := s.connection.RemoveEmpty(ctx, nodespec.Root); err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	r.Hosts.Close(s.instance.Name)
	s.emit(hostGivenBack(s.instance))
	return nil
}

// changed reports whether the agent has left on the host what says how it was before.
func (s *scope) changed(ctx context.Context) (bool, error) {
	for _, path := range []string{nodespec.LedgerPath, nodespec.FoundPath} {
		if there, err := s.connection.Exists(ctx, path); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

func (s *scope) removeWithAgent(ctx context.Context) *obstacle {
	if s.session.facts == nil {
		if o := s.askFacts(ctx); o != nil {
			return s.answersWhileRestarting(o)
		}
	}
	if o := s.awaitRestart(s.session.facts); o != nil {
		return o
	}
	s.instance.Status.Host = hostStatus(s.session.facts)
	// An instance that went before it knew whose host it has learns it only now.
	if o := s.handOver(ctx, s); o != nil || s.handedOver {
		return o
	}
	// From here on the host is no longer what it was brought to, also when its entry comes back.
	if err := s.forgetDigest(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "note that the host is being given back", err)
	}
	// So nothing that is remembered of it may let an apply or a check be left out.
	s.session.forgetState()
	line, err := s.run(ctx, verb.Remove)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	if line.Type == verb.TypeRebooting {
		s.emit(hostRestarts(s.instance))
		return s.beginRestart()
	}
	if !line.Result.Removed {
		return &obstacle{
			condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonRemoving,
			message: "The agent has not given back everything yet.", next: "The operator asks it again.",
		}
	}
	return nil
}

// forgetNode deletes the Node and the certificate requests of the instance.
func (r *Reconciler) forgetNode(ctx context.Context, s *scope) *obstacle {
	if err := r.deleteRequests(ctx, s); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "delete certificate requests", err)
	}
	if s.handedOver || s.nodeName() == "" {
		return nil
	}
	node := &corev1.Node{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: s.nodeName()}, node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if own, err := s.owns(ctx, node); err != nil || !own {
		return notOwn(err)
	}
	if err := r.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID}); client.IgnoreNotFound(err) != nil {
		return apiObstacle(v1alpha1.ConditionReady, "delete the Node", err)
	}
	s.emit(nodeDeleted(s.instance, node))
	return nil
}

// deleteInstance ends the instance's life.
func (r *Reconciler) deleteInstance(ctx context.Context, s *scope) *obstacle {
	if o := s.leaveGate(ctx); o != nil {
		return o
	}
	preconditions := client.Preconditions{UID: &s.instance.UID}
	if err := r.Client.Delete(ctx, s.instance, preconditions); client.IgnoreNotFound(err) != nil {
		return apiObstacle(v1alpha1.ConditionReady, "delete the WindowsInstance", err)
	}
	s.silent = true
	r.forget(s.instance.Name)
	return nil
}
