package instance

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// verifyPhase is the phase that has the agent verify the node.
type verifyPhase struct {
	specs desired.SpecBuilder
	dial  hostjobs.Dial
}

// reconcile has the agent verify that the node works.
func (p verifyPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	spec, o := p.specs.BuildForCachedNode(ctx, s)
	if o != nil {
		return o
	}
	_, pending, err := s.Host.Verify(p.dial, net.JoinHostPort(spec.NodeIP, kubeletPort))
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionReady, err)
	}
	if failed := failedChecks(spec.Checks, s.Host.Verified.Checks, false); len(failed) > 0 {
		// The next attempt compares the host with its spec again, because differences are a common cause of
		// failed checks.
		s.Host.AppliedDigest, s.Host.Verified = "", nil
		s.Instance.Status.SpecDigest = ""
		return &result.Result{
			Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChecksFailed, Outcome: result.ChangeFailed,
			Message:    strings.Join(failed, "; "),
			NextAction: "The node keeps its start-up taint and accepts no pods until all checks pass.",
		}
	}
	return nil
}

// maxFindingLength is the maximum size of a check's message from the host, in bytes.
const maxFindingLength = 1024

// failedChecks returns the checks of the spec that did not pass, either gating or advisory ones. A check without
// a result has not passed.
func failedChecks(wanted []nodespec.Check, results []agentapi.CheckResult, advisory bool) []string {
	var failed []string
	for _, check := range wanted {
		if check.Advisory != advisory {
			continue
		}
		i := slices.IndexFunc(results, func(r agentapi.CheckResult) bool { return r.Name == check.Name })
		switch {
		case i < 0:
			failed = append(failed, check.Name+": the agent did not respond")
		case !results[i].Passed:
			failed = append(failed, check.Name+": "+sanitize.Plain(results[i].Message, maxFindingLength))
		}
	}
	return failed
}
