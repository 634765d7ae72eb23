package instance

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/removal"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// step is the function of a phase. It returns nil if nothing remains to be done, so that the next phase may run.
type step func(context.Context, *scope.Scope) *result.Result

// phase is one stage in the reconcile of an instance.
type phase struct {
	// name is the name of the phase in events and in the log.
	name string
	run  step
	// keepsReady reports whether a result of the phase leaves the Ready condition of a working node unchanged;
	// nil for no.
	keepsReady func(*scope.Scope) bool
	// turn defines the effect of a result of the phase on the instance's disruption slot.
	turn drain.Properties
}

// Values of phase.keepsReady.
func always(*scope.Scope) bool           { return true }
func whenNodeWorks(s *scope.Scope) bool  { return s.Works }
func whenNodeGoesOn(s *scope.Scope) bool { return s.KeyDiffers || s.Moved || s.AgentCheck }

// Values of phase.turn.
var (
	asksHost          = drain.Properties{AsksHost: true}
	letsOthersGoFirst = drain.Properties{LetsOthersGoFirst: true}
)

// phases returns the phases for the desired state of an instance, in their order.
func (a *rooms) phases(instance *v1alpha1.WindowsInstance) []phase {
	switch {
	case instance.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged:
		return []phase{
			{name: "remember", run: a.remember.run},
			{name: "unmanaged", run: a.unmanaged.run},
		}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved && instance.Spec.Source.Machine != nil:
		return []phase{
			{name: "disconnect", run: a.removal.Disconnect},
			{name: "remember", run: a.remember.run},
			{name: "forgetNode", run: a.removal.ForgetNode},
			{name: "lateNode", run: a.removal.AwaitLateNode},
			{name: "forgetKubelet", run: a.removal.ForgetKubelet},
			{name: "deleteInstance", run: a.removal.DeleteInstance},
		}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved:
		return []phase{
			{name: "pause", run: pause, turn: letsOthersGoFirst},
			{name: "settings", run: a.settings.run},
			{name: "remember", run: a.remember.run},
			{name: "handOver", run: a.removal.HandOver, turn: letsOthersGoFirst},
			{name: "key", run: onlyIf(removal.NeedsHost, a.key.run), turn: letsOthersGoFirst},
			{name: "identify", run: a.removal.Identify},
			{name: "drain", run: a.removal.Drain},
			{name: "reachForRemoval", run: a.removal.Reach},
			{name: "giveBack", run: a.removal.GiveBack},
			{name: "forgetNode", run: a.removal.ForgetNode},
			{name: "forgetKubelet", run: a.removal.ForgetKubelet},
			{name: "deleteInstance", run: a.removal.DeleteInstance},
		}
	}
	return []phase{
		{name: "entry", run: a.entry.run, keepsReady: always},
		{name: "pause", run: pause, keepsReady: always},
		{name: "keep", run: a.keep.run, keepsReady: always},
		{name: "key", run: a.key.run, keepsReady: always},
		{name: "cluster", run: a.cluster.run, keepsReady: always},
		{name: "settings", run: a.settings.run},
		{name: "remember", run: a.remember.run},
		{name: "adoptMachine", run: a.adoption.MachineNode},
		{name: "renew", run: a.renew.run},
		{name: "idle", run: a.idle.run},
		{name: "failed", run: a.rollback.Remind},
		{name: "eligible", run: a.eligible.run, keepsReady: whenNodeWorks},
		{name: "replacement", run: a.replacement.run},
		{name: "turn", run: a.turn.Await},
		{name: "reach", run: a.reach.run, keepsReady: whenNodeGoesOn, turn: asksHost},
		{name: "adoptKey", run: a.adoptKey.run},
		{name: "inspect", run: inspect, turn: asksHost},
		{name: "identify", run: a.identify.run, keepsReady: whenNodeWorks},
		{name: "rollBack", run: a.rollback.RollBack},
		{name: "reboot", run: a.reboot.run},
		{name: "support", run: a.supported.run, keepsReady: whenNodeWorks},
		{name: "preflight", run: preflight},
		{name: "claim", run: a.names.Claim},
		{name: "adopt", run: a.adoption.Node},
		{name: "install", run: a.install.run},
		{name: "join", run: a.join.run},
		{name: "network", run: a.network.run},
		{name: "verify", run: a.verify.run},
		{name: "release", run: a.release.run},
	}
}

// onlyIf skips a step that is not needed.
func onlyIf(needed func(*scope.Scope) bool, run step) step {
	return func(ctx context.Context, s *scope.Scope) *result.Result {
		if !needed(s) {
			return nil
		}
		return run(ctx, s)
	}
}

// aside moves a result that does not concern the node itself from Ready to UpToDate. Examples are a missing key,
// an unreadable or unsupported cluster, a pause, or a key unknown to the host. Such a result only prevents the
// operator from maintaining a working node.
func aside(s *scope.Scope, p phase, o *result.Result) *result.Result {
	if p.keepsReady == nil || !p.keepsReady(s) || o.Outcome == result.NothingToDo || s.Instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved ||
		s.Instance.Status.SpecDigest == "" || !ptr.Deref(s.Instance.Status.Readiness, v1alpha1.Readiness{}).Ready {
		return o
	}
	o.Condition = v1alpha1.ConditionUpToDate
	return o
}
