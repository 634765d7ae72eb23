package replacement

import (
	"context"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
)

// reporter reports why Machines wait or are not replaced, once for each Machine and reason.
type reporter struct {
	reconciler *Reconciler
	log        logr.Logger
	overview   overview
}

// newReporter returns the reporter of a reconcile. A report about a Machine is remembered while the Machine is
// outdated.
func (r *Reconciler) newReporter(ctx context.Context, overview overview, plan replacementpolicy.Replacements) *reporter {
	t := &reporter{reconciler: r, log: log.FromContext(ctx), overview: overview}
	names := slices.Collect(maps.Keys(plan.NotReplaced))
	for _, candidate := range plan.Candidates {
		names = append(names, candidate.Machine)
	}
	for _, waiting := range plan.Waiting {
		names = append(names, waiting.Machine)
	}
	r.reported.Begin()
	for _, name := range names {
		r.reported.Keep(overview.machines[name].UID)
	}
	r.reported.End()
	return t
}

func (t *reporter) emitOnce(machine, reason string, e recorder.Event) {
	if !t.reconciler.reported.IsNew(t.overview.machines[machine].UID, reason) {
		return
	}
	t.log.Info(e.Message, "machine", machine)
	recorder.Emit(t.reconciler.Events, e)
}

func (t *reporter) reportPending(candidate replacementpolicy.Candidate, reason, why string) {
	machine := t.overview.machines[candidate.Machine]
	t.emitOnce(candidate.Machine, reason, t.reconciler.replacementPending(candidate.Cause, machine, t.overview.instanceByMachine(candidate.Machine), t.overview.configuredVersion(machine), reason, why))
}

// reportRefused reports once that the API server refuses to delete a Machine, regardless of the error text.
func (t *reporter) reportRefused(candidate replacementpolicy.Candidate, why string) {
	machine := t.overview.machines[candidate.Machine]
	t.emitOnce(candidate.Machine, deletionRefused, t.reconciler.deletionRejected(candidate.Cause, machine,
		t.overview.instanceByMachine(candidate.Machine), t.overview.configuredVersion(machine), why))
}

// reportWaiting reports only the first Machine of each MachineSet for each check, because the same check applies to the
// rest of the set.
func (t *reporter) reportWaiting(machines []replacementpolicy.Waiting) {
	type same struct{ set, check string }
	seen := map[same]bool{}
	for _, m := range machines {
		if key := (same{m.Set, m.Check}); !seen[key] {
			seen[key] = true
			t.reportPending(m.Candidate, m.Check, m.Message)
		}
	}
}

func (t *reporter) reportNotReplaced(machines map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		machine, instance, why := t.overview.machines[name], t.overview.instanceByMachine(name), machines[name]
		event := machineNotReplaced(machine, instance, why)
		if instance.Spec.Paused {
			event = replacementPaused(machine, instance, why)
		}
		t.emitOnce(name, why, event)
	}
}
