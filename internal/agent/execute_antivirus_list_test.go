package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// failingLists runs a test for each failure of the list of exclusions, at the first item and at the end.
func failingLists(t *testing.T, test func(t *testing.T, after int, code uint32)) {
	t.Helper()
	for name, code := range map[string]uint32{
		"access denied": fake.CodeAccessDenied, "Defender reports that it was stopped": fake.CodeDefenderStopped,
		"invalid class": fake.CodeInvalidClass,
	} {
		for after := range 2 {
			t.Run(fmt.Sprintf("%s after %d items", name, after), func(t *testing.T) {
				t.Parallel()
				test(t, after, code)
			})
		}
	}
}

//
func TestExclusions_NotSetIfListUnreadable(t *testing.T) {
	t.Parallel()
	failingLists(t, func(t *testing.T, after int, code uint32) {
		r := newRig(t).start()
		restore := r.FailList(fake.AntivirusList, after, code)
		if got := exclusionSteps(r.configureHost()); len(got) != 0 {
			t.Errorf("steps: %q", got)
		}
		if check := r.exclusionsResult(); check.Passed || !check.Advisory ||
			!strings.Contains(check.Message, fmt.Sprintf("0x%08x", code)) {
			t.Errorf("the check reports %+v", check)
		}
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("there is more to do: %s", formatSteps(p))
		}
		restore()
		if steps := r.mustApply(r.fullSpec()); len(exclusionSteps(steps)) != len(r.fullSpec().Exclusions) || !r.hasExclusions(r.fullSpec()) {
			t.Errorf("they are not set when they can be read: %q", steps)
		}
		r.awaitServices()
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
}

// Reading the list may fail for the change, although it succeeded for the plan.
func TestExclusions_FailedChangeReportedNotRepeated(t *testing.T) {
	t.Parallel()
	failingLists(t, func(t *testing.T, after int, code uint32) {
		r := newRig(t).start()
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Antivirus" && o.Method == "AddExclusion" {
				r.FailList(fake.AntivirusList, after, code)
			}
			return nil
		})
		r.configureHost()
		reason := fmt.Sprintf("0x%08x", code)
		if len(r.Exclusions()) != 0 || !r.hasWarning("AddExclusion", reason) {
			t.Errorf("exclusions %v, advice %q", r.Exclusions(), r.details)
		}
		if check := r.exclusionsResult(); check.Passed || !strings.Contains(check.Message, reason) {
			t.Errorf("the check reports %+v", check)
		}
		r.FailList(fake.AntivirusList, 0, 0)
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("Defender is asked again and again: %s", formatSteps(p))
		}
	})
}

//
func TestExclusions_RemovalReportsUnreadableExclusions(t *testing.T) {
	t.Parallel()
	failingLists(t, func(t *testing.T, after int, code uint32) {
		r := newConfiguredRig(t)
		r.FailList(fake.AntivirusList, after, code)
		r.removeNode()
		if !r.hasExclusions(r.fullSpec()) {
			t.Errorf("exclusions: %v", r.Exclusions())
		}
		for _, exclusion := range r.fullSpec().Exclusions {
			if !r.hasWarning("RemoveExclusion", exclusion.Value, fmt.Sprintf("0x%08x", code)) {
				t.Errorf("nothing reports that %s stays: %q", exclusion.Value, r.details)
			}
		}
	})
}

// Defender may be stopped between the plan and the step.
func TestExclusions_KeptIfDefenderStopsDuringRemoval(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Antivirus" && o.Method == "RemoveExclusion" {
			return r.Host().Services.Stop(r.ctx, host.DefenderService)
		}
		return nil
	})
	r.removeNode()
	if first := r.fullSpec().Exclusions[0].Value; !r.hasExclusions(r.fullSpec()) || !r.hasWarning("RemoveExclusion", first, "remove it manually") {
		t.Errorf("exclusions %v, advice %q", r.Exclusions(), r.details)
	}
}

// hasWarning reports whether a step with that name gave advice containing all words.
func (r *rig) hasWarning(step string, words ...string) bool {
	return slices.ContainsFunc(r.details, func(detail string) bool {
		return strings.HasPrefix(detail, step) && !slices.ContainsFunc(words, func(word string) bool {
			return !strings.Contains(detail, word)
		})
	})
}
