package replacement

import (
	"context"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
)

// teller tells why Machines wait or are left, once for each Machine and reason.
type teller struct {
	reconciler *Reconciler
	log        logr.Logger
	overview   overview
	// told is what is known to have been said of each Machine.
	told map[types.UID]string
}

// teller makes one for a pass. What was said of a Machine is remembered for as long as it is outdated.
func (r *Reconciler) teller(ctx context.Context, overview overview, plan replacementpolicy.Replacements) *teller {
	t := &teller{reconciler: r, log: log.FromContext(ctx), overview: overview, told: map[types.UID]string{}}
	names := slices.Collect(maps.Keys(plan.Left))
	for _, candidate := range plan.Candidates {
		names = append(names, candidate.Machine)
	}
	for _, waiting := range plan.Waiting {
		names = append(names, waiting.Machine)
	}
	for _, name := range names {
		uid := overview.machines[name].UID
		if reason, known := r.told[uid]; known {
			t.told[uid] = reason
		}
	}
	return t
}

func (t *teller) say(machine, reason string, e recorder.Event) {
	uid := t.overview.machines[machine].UID
	if t.told[uid] == reason {
		return
	}
	t.told[uid] = reason
	t.log.Info(e.Message, "machine", machine)
	recorder.Emit(t.reconciler.Events, e)
}

func (t *teller) waits(candidate replacementpolicy.Candidate, reason, why string) {
	machine := t.overview.machines[candidate.Machine]
	t.say(candidate.Machine, reason, t.reconciler.waits(candidate.Cause, machine, t.overview.instance(candidate.Machine), t.overview.version(machine), reason, why))
}

// refused reports once that the API server refuses to delete a Machine, whatever the text of the answer.
func (t *teller) refused(candidate replacementpolicy.Candidate, why string) {
	machine := t.overview.machines[candidate.Machine]
	t.say(candidate.Machine, deletionRefused, t.reconciler.refused(candidate.Cause, machine,
		t.overview.instance(candidate.Machine), t.overview.version(machine), why))
}

// waiting tells of the first Machine of each MachineSet that a check keeps: the others are kept by the same.
func (t *teller) waiting(machines []replacementpolicy.Waiting) {
	type same struct{ set, check string }
	seen := map[same]bool{}
	for _, m := range machines {
		if key := (same{m.Set, m.Check}); !seen[key] {
			seen[key] = true
			t.waits(m.Candidate, m.Check, m.Message)
		}
	}
}

func (t *teller) left(machines map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		machine, instance, why := t.overview.machines[name], t.overview.instance(name), machines[name]
		event := left(machine, instance, why)
		if instance.Spec.Paused {
			event = paused(machine, instance, why)
		}
		t.say(name, why, event)
	}
}
