package plan

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// The exclusions of Microsoft Defender Antivirus are there before containerd starts, and made before it is stopped for
// a change. Where Defender is not at work, there is nothing to exclude anything from; when it begins to work, they are
// drift. A Defender that refuses keeps no host from becoming a node or from being given back: the refusal is noted in
// the ledger, and Defender is not asked again at once.

func (m *maker) addExclusions() {
	if !m.facts.exclusionsCanChange() {
		return
	}
	for _, exclusion := range m.spec.Exclusions {
		if !excluded(m.facts.Antivirus.Exclusions, exclusion) {
			m.add(AddExclusion{Exclusion: exclusion}, "Microsoft Defender Antivirus scans files opened by %s", exclusion.Value)
		}
	}
}

// exclusion takes an exclusion of ours away. If Defender's exclusions cannot be read, the step is tried once: it reports
// the reason and the exclusion that stays.
func (r *restorer) exclusion(exclusion host.Exclusion) {
	antivirus := r.facts.Antivirus
	unreadable := antivirus.AtWork && antivirus.Unknown != ""
	if (unreadable || excluded(antivirus.Exclusions, exclusion)) && !r.facts.refused() {
		r.add(RemoveExclusion{Exclusion: exclusion}, false)
	}
}

// known reports whether the facts have all exclusions that matter.
func (a AntivirusFacts) known() bool { return a.AtWork && a.Unknown == "" }

func (f Facts) exclusionsCanChange() bool { return f.Antivirus.known() && !f.refused() }

// refused reports whether Defender has refused a change since the last boot.
func (f Facts) refused() bool {
	return f.Ledger.Refusal != nil && f.Ledger.Refusal.BootID == f.System.BootID
}

func excluded(list []host.Exclusion, exclusion host.Exclusion) bool {
	return slices.ContainsFunc(list, exclusion.Is)
}

// runs reports whether a process runs from what is excluded, such as a shim of a former release, which lives as long as
// its container.
func runs(facts Facts, exclusion host.Exclusion) bool {
	return slices.ContainsFunc(facts.Processes, func(process host.Process) bool {
		return nodespec.SamePath(process.Path, exclusion.Value)
	})
}

// WithExclusion returns the ledger with an exclusion that we are about to add, because it was absent.
func (l Ledger) WithExclusion(exclusion host.Exclusion) Ledger {
	if !excluded(l.Exclusions, exclusion) {
		l.Exclusions = append(slices.Clip(l.Exclusions), exclusion)
	}
	return l
}

// NamedExclusions returns the exclusions of a list that the spec or the ledger names: others do not concern us.
func NamedExclusions(list []host.Exclusion, ledger Ledger, spec nodespec.NodeSpec) []host.Exclusion {
	named := slices.Concat(spec.Exclusions, ledger.Exclusions)
	var result []host.Exclusion
	for _, exclusion := range list {
		if excluded(named, exclusion) {
			result = append(result, exclusion)
		}
	}
	return result
}
