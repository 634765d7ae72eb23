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

// phaseFunc is the function of a phase. It returns nil if nothing remains to be done, so that the next phase may run.
type phaseFunc func(context.Context, *scope.Scope) *result.Result

// phaseEntry is one stage in the reconcile of an instance.
type phaseEntry struct {
	// name is the name of the phase in events and in the log.
	name string
	run  phaseFunc
	// keepsReady reports whether a result of the phase leaves the Ready condition of a working node unchanged;
	// nil for no.
	keepsReady func(*scope.Scope) bool
	// slotPolicy defines the effect of a result of the phase on the instance's disruption slot.
	slotPolicy drain.SlotPolicy
}

// Values of phaseEntry.keepsReady.
func alwaysKeepsReady(*scope.Scope) bool     { return true }
func whenNodeInService(s *scope.Scope) bool  { return s.NodeInService }
func whenNodeUnaffected(s *scope.Scope) bool { return s.KeyDiffers || s.AddressChanged || s.AgentCheck }

// Values of phaseEntry.slotPolicy.
var (
	contactsHost = drain.SlotPolicy{ContactsHost: true}
	yieldsSlot   = drain.SlotPolicy{YieldsSlot: true}
)

// phasesFor returns the phases for the desired state of an instance, in their order.
func (a *dependencies) phasesFor(instance *v1alpha1.WindowsInstance) []phaseEntry {
	switch {
	case instance.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged:
		return []phaseEntry{
			{name: "rebindNode", run: a.rebind.reconcile},
			{name: "unmanaged", run: a.unmanaged.reconcile},
		}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved && instance.Spec.Source.Machine != nil:
		return []phaseEntry{
			{name: "disconnect", run: a.removal.Disconnect},
			{name: "rebindNode", run: a.rebind.reconcile},
			{name: "deleteNode", run: a.removal.DeleteNode},
			{name: "awaitLateNode", run: a.removal.AwaitLateNode},
			{name: "deleteKubeletRequests", run: a.removal.DeleteKubeletRequests},
			{name: "deleteInstance", run: a.removal.DeleteInstance},
		}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved:
		return []phaseEntry{
			{name: "pause", run: checkPaused, slotPolicy: yieldsSlot},
			{name: "settings", run: a.settings.reconcile},
			{name: "rebindNode", run: a.rebind.reconcile},
			{name: "transferSharedHost", run: a.removal.TransferSharedHost, slotPolicy: yieldsSlot},
			{name: "key", run: runIf(removal.NeedsHost, a.key.reconcile), slotPolicy: yieldsSlot},
			{name: "identify", run: a.removal.Identify},
			{name: "drain", run: a.removal.Drain},
			{name: "connectHost", run: a.removal.ConnectHost},
			{name: "restoreHost", run: a.removal.RestoreHost},
			{name: "deleteNode", run: a.removal.DeleteNode},
			{name: "deleteKubeletRequests", run: a.removal.DeleteKubeletRequests},
			{name: "deleteInstance", run: a.removal.DeleteInstance},
		}
	}
	return []phaseEntry{
		{name: "validateEntry", run: a.entryValidation.reconcile, keepsReady: alwaysKeepsReady},
		{name: "pause", run: checkPaused, keepsReady: alwaysKeepsReady},
		{name: "revertNodeDrift", run: a.drift.reconcile, keepsReady: alwaysKeepsReady},
		{name: "key", run: a.key.reconcile, keepsReady: alwaysKeepsReady},
		{name: "cluster", run: a.cluster.reconcile, keepsReady: alwaysKeepsReady},
		{name: "settings", run: a.settings.reconcile},
		{name: "rebindNode", run: a.rebind.reconcile},
		{name: "adoptMachineNode", run: a.adoption.AdoptMachineNode},
		{name: "renew", run: a.renew.reconcile},
		{name: "checkUpToDate", run: a.idle.reconcile},
		{name: "holdFailedChange", run: a.rollback.HoldFailedChange},
		{name: "checkEligibility", run: a.eligibility.reconcile, keepsReady: whenNodeInService},
		{name: "replacement", run: a.replacement.reconcile},
		{name: "awaitSlot", run: a.disruptor.AwaitSlot},
		{name: "connect", run: a.connect.reconcile, keepsReady: whenNodeUnaffected, slotPolicy: contactsHost},
		{name: "adoptKey", run: a.adoptKey.reconcile},
		{name: "inspect", run: inspectHost, slotPolicy: contactsHost},
		{name: "identify", run: a.identify.reconcile, keepsReady: whenNodeInService},
		{name: "rollBack", run: a.rollback.RollBack},
		{name: "reboot", run: a.reboot.reconcile},
		{name: "support", run: a.hostSupport.reconcile, keepsReady: whenNodeInService},
		{name: "preflight", run: checkAPIServerAccess},
		{name: "claim", run: a.nodeNamer.Claim},
		{name: "adopt", run: a.adoption.AdoptNode},
		{name: "install", run: a.install.reconcile},
		{name: "join", run: a.join.reconcile},
		{name: "network", run: a.network.reconcile},
		{name: "verify", run: a.verify.reconcile},
		{name: "activate", run: a.activate.reconcile},
	}
}

// runIf returns a phase function that does nothing unless needed returns true.
func runIf(needed func(*scope.Scope) bool, run phaseFunc) phaseFunc {
	return func(ctx context.Context, s *scope.Scope) *result.Result {
		if !needed(s) {
			return nil
		}
		return run(ctx, s)
	}
}

// keepReadyCondition moves a result that does not concern the node itself from Ready to UpToDate. Examples are a
// missing key, an unreadable or unsupported cluster, a pause, or a key unknown to the host. Such a result only
// prevents the operator from maintaining a working node.
func keepReadyCondition(s *scope.Scope, p phaseEntry, o *result.Result) *result.Result {
	if p.keepsReady == nil || !p.keepsReady(s) || o.Outcome == result.Done || s.Instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved ||
		s.Instance.Status.SpecDigest == "" || !ptr.Deref(s.Instance.Status.Readiness, v1alpha1.Readiness{}).Ready {
		return o
	}
	o.Condition = v1alpha1.ConditionUpToDate
	return o
}
