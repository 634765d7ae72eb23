package instance

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// delivery applies NodeSpecs to hosts.
type delivery struct {
	disruptor *drain.Disruptor
	events    status.Recorder
}

// reapplyDelay is the delay before an apply is repeated that left steps undone.
const reapplyDelay = time.Minute

// apply has the agent configure the host with the spec. The same spec is not applied twice over one connection,
// unless the agent left steps undone. A node in service is first drained, after acquiring a disruption slot.
func (d delivery) apply(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec) *result.Result {
	digest, host := spec.Digest(), s.Host
	if former, found := host.FormerApply(digest); found {
		if o := d.recordApplied(s, former); o != nil {
			return o
		}
	}
	done := len(host.RemainingPlan.Steps) == 0 || s.Clock.Since(host.AppliedAt) < reapplyDelay
	if host.AppliedDigest == digest && done && !spec.HasCertificate() {
		return nil
	}
	// The last spec that was applied completely is the spec that a node in service was verified with.
	fallback := ""
	if before := host.Facts.Applied; before != digest && s.Instance.Status.NodeRef.UID != "" {
		fallback = before
	}
	applied, pending, err := host.Apply(spec, fallback, s.Session.SendFullFiles, func() (inService bool, o *result.Result) {
		if inService, o = d.disruptor.Prepare(ctx, s, spec); o != nil {
			return false, o
		}
		if s.Session.WaitSpecDigest != digest && !s.Session.KeepsWait {
			s.Session.WaitName = ""
		}
		// From here on, the state of the host is uncertain, even if the desired state changes again.
		s.Host.Verified, s.Instance.Status.SpecDigest = nil, ""
		return inService, nil
	})
	if pending != nil {
		return pending
	}
	if err != nil {
		s.Session.SendFullFiles = true
		return s.HandleFailure(v1alpha1.ConditionInstalled, err)
	}
	return d.recordApplied(s, applied)
}

// recordApplied records the result of a successful apply.
func (d delivery) recordApplied(s *scope.Scope, applied hostjobs.Applied) *result.Result {
	line, host := applied.Line, s.Host
	if line.Result != nil && line.Result.NoRollbackReason != "" {
		d.disruptor.WarnNoRollback(s, line.Result.NoRollbackReason)
	}
	s.Session.KeepsWait = false
	s.Session.WaitSpecDigest, s.Session.SendFullFiles, host.Planned, host.Verified = applied.Digest, false, nil, nil
	if line.Result != nil && line.Result.Facts != nil {
		if recordFacts(s, line.Result.Facts); line.Result.Facts.KubeletStarted.IsZero() {
			s.Session.KubeletAbsent = s.Clock.Now()
		}
	}
	if line.Type == agentapi.TypeRebooting {
		d.events.Emit(status.HostRebootingEvent(s.Instance))
		return s.BeginRestart()
	}
	if line.Result.Plan.IsDisruptive() { // the agent has refused the plan, because the node is in service and must be drained first
		host.AppliedDigest = ""
		return result.WriteFirst(v1alpha1.ConditionInstalled)
	}
	host.AppliedDigest, host.AppliedAt, host.RemainingPlan = applied.Digest, s.Clock.Now(), *line.Result.Plan
	return nil
}
