package instance

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

const (
	// readyLimit is how long a node that passed all checks may take to report Ready before it counts as a failure.
	readyLimit = 2 * time.Minute
	// readyPoll is how soon a Node is looked at again whose kubelet has not reported since it began: the Node's events do not tell of a
	// report that says the same as the one before.
	readyPoll = 2 * time.Second
)

// verify has the agent prove that the node works.
func (r *Reconciler) verify(ctx context.Context, s *scope) *obstacle {
	if s.session.checked {
		return nil
	}
	line, err := s.run(ctx, verb.Verify)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	if failed := failedChecks(spec.Checks, line.Result.Checks, false); len(failed) > 0 {
		// The next attempt compares the host with its spec again: a failed check often has a cause there.
		s.session.applied = ""
		s.instance.Status.SpecDigest = ""
		return &obstacle{
			condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonChecksFailed, outcome: changeFailed, message: strings.Join(failed, "; "),
			next: "The node keeps its taint " + v1alpha1.TaintNotReady + " and takes no pods until all checks pass.",
		}
	}
	s.session.checked, s.session.advice = true, failedChecks(spec.Checks, line.Result.Checks, true)
	s.session.kubeletStarted = line.Result.KubeletStarted
	return nil
}

// failedChecks are those checks of the spec that did not pass, gating or advisory ones. One that was not answered has not passed.
func failedChecks(wanted []nodespec.Check, results []verb.CheckResult, advisory bool) []string {
	var failed []string
	for _, check := range wanted {
		if check.Advisory != advisory {
			continue
		}
		i := slices.IndexFunc(results, func(r verb.CheckResult) bool { return r.Name == check.Name })
		switch {
		case i < 0:
			failed = append(failed, check.Name+": the agent did not answer")
		case !results[i].Passed:
			failed = append(failed, check.Name+": "+plain(results[i].Message, longestDetail))
		}
	}
	return failed
}

// releaseNode hands a node that was proven to work to the scheduler, and lets the connection go.
func (r *Reconciler) releaseNode(ctx context.Context, s *scope) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if message := s.notReady(node, s.session.kubeletStarted); message != "" {
		return s.awaitReady(node, "the Node to report Ready", message)
	}
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	first := unproven(node)
	proven := "The node was checked to work and takes pods." + s.advise() + r.tryLogsPort(ctx, s)
	if err := s.markNode(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "take the start-up taint from the Node", err)
	}
	s.settle(ctx)
	s.noteCertificates(spec)
	status := &s.instance.Status
	status.FailedChange = nil
	status.SpecDigest, status.Version, status.PublicKeyHash = spec.Digest(), r.Version, s.key.Hash()
	s.pass(v1alpha1.ConditionReady, proven)
	s.pass(v1alpha1.ConditionUpToDate, "The host is what version "+r.Version+" of the operator wants it to be.")
	if first {
		s.emit(nodeReady(s.instance, node, r.Clock.Since(s.instance.CreationTimestamp.Time)))
	}
	s.session.fallback, s.session.changeFailures = "", 0
	s.session.forgetHost()
	r.Hosts.Close(s.instance.Name)
	// Write the status before the gate is left: canarySoak of the next node counts from the time that it has.
	status.ObservedGeneration = s.instance.Generation
	if err := s.show(ctx, nil); err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "write down that the node is up to date", err)
	}
	return s.leaveGate(ctx)
}

// notReady explains why the Node is not known to be Ready, or returns "". A report from before the running kubelet was started does not count.
func (s *scope) notReady(node *corev1.Node, kubeletStarted time.Time) string {
	message := "The kubelet of Node " + s.nodeName() + " does not report Ready yet."
	switch {
	case node == nil:
		return message
	case !isReady(node):
		_, kubelet := notReadySince(node)
		return message + " It says: " + kubelet
	case readyCondition(node).LastHeartbeatTime.Time.Before(kubeletStarted.Truncate(time.Second)): // the API has whole seconds
		return message + " It has not reported at all since it began at " + kubeletStarted.UTC().Format(time.RFC3339) + "."
	}
	return ""
}

// awaitReady waits until the Node is known to be Ready; what names the wait.
func (s *scope) awaitReady(node *corev1.Node, what, message string) *obstacle {
	o := s.awaited(what, readyLimit, &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonNodeNotReady, outcome: changeFailed, message: message,
		next: "All checks on the host passed. The kubelet reports within a minute.",
	})
	switch {
	case o.outcome != wait:
		s.session.checked = false // when that kubelet began may not be true any more
	case node != nil && isReady(node):
		o.after = min(o.after, readyPoll)
	}
	return o
}

// settle has the agent let go of what the host was before: the node was proven with what it is now. If that fails, it is done with the next
// change.
func (s *scope) settle(ctx context.Context) {
	if s.session.facts == nil || s.session.facts.Fallback == "" {
		return
	}
	if _, err := s.run(ctx, verb.Settle); err != nil {
		log.FromContext(ctx).Info("what the host was before stays on its disk until the next change", "reason", err.Error())
	}
}

// longestAdvice is how much of a check's message the condition shows, in bytes; the event has all of it.
const longestAdvice = 250

// advise says which advisory checks have failed. The node works without, so they are no obstacle.
func (s *scope) advise() string {
	advice := ""
	for _, failed := range s.session.advice {
		s.emit(adviceGiven(s.instance, failed))
		advice += " But " + sentence(text.Shortened(failed, longestAdvice))
	}
	return advice
}

// kubeletPort is where the API server reaches the kubelet for logs and exec.
const (
	kubeletPort  = "10250"
	kubeletLimit = 5 * time.Second
)

// tryLogsPort says when the kubelet's port is closed to others. The node works without it, so it is advice and no obstacle.
func (r *Reconciler) tryLogsPort(ctx context.Context, s *scope) string {
	ctx, cancel := context.WithTimeout(ctx, kubeletLimit)
	defer cancel()
	address := net.JoinHostPort(s.instance.Status.Host.Addresses[0], kubeletPort)
	connection, err := r.Dial(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close() // nothing was sent
		return ""
	}
	s.emit(logsPortClosed(s.instance, address, err))
	return " But TCP port " + kubeletPort + " of the host is closed: oc logs and oc exec do not reach its pods. Open it in the network between control plane and host."
}
