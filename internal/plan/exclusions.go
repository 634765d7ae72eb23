package plan

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// The exclusions of Microsoft Defender Antivirus are added before containerd starts, and before containerd is
// stopped for a change. While Defender is inactive, no exclusions are needed; when Defender becomes active, missing
// exclusions are drift. If Defender refuses a change, the host can still become a node or be restored. The ledger
// records the refusal, and the change is not retried immediately.

func (m *planner) addExclusions() {
	if !m.facts.canChangeExclusions() {
		return
	}
	for _, exclusion := range m.spec.Exclusions {
		if !hasExclusion(m.facts.Antivirus.Exclusions, exclusion) {
			m.addOperation(AddExclusion{Exclusion: exclusion}, "Microsoft Defender Antivirus scans files opened by %s", exclusion.Value)
		}
	}
}

// restoreExclusion removes an exclusion that the operator added. If Defender's exclusions cannot be read, the step is
// tried once, to report the reason and the remaining exclusion.
func (r *restorePlanner) restoreExclusion(exclusion host.Exclusion) {
	antivirus := r.facts.Antivirus
	unreadable := antivirus.Active && antivirus.Unknown != ""
	if (unreadable || hasExclusion(antivirus.Exclusions, exclusion)) && !r.facts.hasRefusal() {
		r.addStep(RemoveExclusion{Exclusion: exclusion}, false)
	}
}

// isKnown reports whether the facts contain all relevant exclusions.
func (a AntivirusFacts) isKnown() bool { return a.Active && a.Unknown == "" }

func (f Facts) canChangeExclusions() bool { return f.Antivirus.isKnown() && !f.hasRefusal() }

// hasRefusal reports whether Defender has refused a change since the last boot.
func (f Facts) hasRefusal() bool {
	return f.Ledger.Refusal != nil && f.Ledger.Refusal.BootID == f.System.BootID
}

func hasExclusion(list []host.Exclusion, exclusion host.Exclusion) bool {
	return slices.ContainsFunc(list, exclusion.Is)
}

// isProgramRunning reports whether a process runs from the excluded path, such as a shim of a former release, which
// runs as long as its container.
func isProgramRunning(facts Facts, exclusion host.Exclusion) bool {
	return slices.ContainsFunc(facts.Processes, func(process host.Process) bool {
		return nodespec.IsSamePath(process.Path, exclusion.Value)
	})
}

// WithExclusion returns the ledger with an exclusion that is about to be added and did not exist before.
func (l Ledger) WithExclusion(exclusion host.Exclusion) Ledger {
	if !hasExclusion(l.Exclusions, exclusion) {
		l.Exclusions = append(slices.Clip(l.Exclusions), exclusion)
	}
	return l
}

// NamedExclusions returns the exclusions of a list that are in the spec or the ledger.
func NamedExclusions(list []host.Exclusion, ledger Ledger, spec nodespec.NodeSpec) []host.Exclusion {
	named := slices.Concat(spec.Exclusions, ledger.Exclusions)
	var result []host.Exclusion
	for _, exclusion := range list {
		if hasExclusion(named, exclusion) {
			result = append(result, exclusion)
		}
	}
	return result
}
