package instance

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const (
	// agentCheckBackoff is the delay after the first check of a host without maintenance by its agent. The
	// backoff doubles with each check up to maxAgentCheckBackoff, so that neither a broken nor a hostile host
	// causes more connections.
	agentCheckBackoff    = 10 * time.Minute
	maxAgentCheckBackoff = 2 * time.Hour
)

// needsAgentCheck reports whether the condition WindowsConfiguration shows that the agent of a node does not
// maintain the host. The agent is silent, or reports a difference that only the operator restores, such as a
// change of its own service. An attacker in control of the host can set the condition, which only causes a
// connection.
func needsAgentCheck(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		if condition.Type != nodespec.ConditionConfiguration {
			continue
		}
		return condition.Status == corev1.ConditionUnknown && condition.Reason == nodespec.ConfigurationAgentSilent ||
			condition.Status == corev1.ConditionFalse && condition.Reason == nodespec.ConfigurationNeedsOperator
	}
	return false
}

// tryBeginAgentCheck reports whether the host must be checked over SSH now. The reason is an agent that does not
// maintain the host, or a wrong clock at the last reading. The message of Ready shows a wrong clock. The backoff
// outlasts a recovery of the agent, so a flapping condition causes no more connections than a constant one.
func tryBeginAgentCheck(s *scope.Scope, node *corev1.Node, now time.Time) bool {
	memory := &s.Session.AgentCheck
	switch {
	case needsAgentCheck(node):
	case support.ClockAdvice(s.Session.Clock) != "":
		if first := s.Session.Clock.RespondedAt.Add(agentCheckBackoff); memory.Next.Before(first) {
			memory.Next = first
		}
	default:
		if now.Sub(memory.Next) >= maxAgentCheckBackoff {
			memory.Checks = 0
		}
		return false
	}
	due := !now.Before(memory.Next)
	if due {
		s.Session.AgentCheckActive = true
		memory.Next = now.Add(min(agentCheckBackoff<<min(memory.Checks, 10), maxAgentCheckBackoff))
		memory.Checks++
	}
	s.AgentCheckDelay = memory.Next.Sub(now)
	return due
}

// continueAgentCheck continues a check that an earlier reconcile has begun, if any.
func continueAgentCheck(s *scope.Scope, now time.Time) {
	if s.Session.AgentCheckActive {
		s.AgentCheck, s.AgentCheckDelay = true, s.Session.AgentCheck.Next.Sub(now)
	}
}

// recordAgentCheck records the failure of a check that did not change the node, until the next check. Otherwise,
// the next reconcile would report that the host is up to date. A host that was configured since then has
// responded.
func recordAgentCheck(s *scope.Scope) {
	memory, o := &s.Session.AgentCheck, s.Result
	switch {
	case o == nil:
		memory.Failure = nil
	case o.Outcome == result.Working, o.Outcome == result.Continue: // the check continues
	case s.AgentCheck && o.Outcome.NeedsEvent() && o.Condition == v1alpha1.ConditionUpToDate && s.IsHostUnchanged():
		o.RequeueAfter = s.AgentCheckDelay
		memory.Failure = o
	case s.AgentCheck:
		memory.Failure = nil
	}
}
