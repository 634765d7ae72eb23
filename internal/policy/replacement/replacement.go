// Package replacement decides which Machines are replaced because their hosts have another key or another version.
// The package does not decide whether a node may be disrupted now.
package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// InPlaceTimeout is the time after a key change during which a Machine is not replaced if its host may still accept the
// new key without a replacement.
const InPlaceTimeout = 10 * time.Minute

// Fleet holds the facts for replacing Machines: the Windows Machines of a cluster, and their MachineSets and Nodes.
type Fleet struct {
	Machines []Machine
	Sets     []MachineSet
	Nodes    []Node
	// ClusterRefusal is the reason why no further host can be a node of the cluster; empty if hosts can.
	ClusterRefusal string
}

// Machine is a Windows Machine.
type Machine struct {
	Name, Phase string
	// Set is the name of the MachineSet that controls the Machine; empty if there is none.
	Set string
	// Node is the name of the Node; empty if there is none.
	Node string
	// Deleting is true if the deletion was requested.
	Deleting bool
	// Ignored is true if the operator must ignore the Machine; Paused is true if the instance is paused.
	Ignored, Paused bool
	// HasSlot is true if the Machine holds a disruption slot for its replacement. Without a deletion, the slot is from an
	// operator that has ended in between.
	HasSlot bool
	// Refused is true if the host refused the current key.
	Refused bool
	// NeedsReplacement is true if the host differs from the desired configuration of the operator's version, and must be
	// replaced to match it.
	NeedsReplacement bool
	// NameRefusal is the reason why the host of a Machine with a name of this length cannot be a node; empty if it
	// can.
	NameRefusal string
	// Image identifies the image in the providerSpec; Created is the creation time.
	Image   string
	Created time.Time
	// Build is the Windows build of the host; empty while unknown. BuildRefusal is the reason why a new host with the
	// build would be refused; empty if it would be accepted.
	Build, BuildRefusal string
}

// MachineSet is a MachineSet with Windows Machines.
type MachineSet struct {
	Name string
	// Replicas is the desired number of Machines, and Machines the current number, with any labels.
	Replicas, Machines int
	Deleting           bool
	// ExternalKey is true if the Machines get their key from a source other than the operator's user data: from other user
	// data, or from a template.
	ExternalKey bool
	// Image identifies the image of the next Machine.
	Image string
}

// Node is the Node of a Windows Machine.
type Node struct {
	Name string
	// KeyHash identifies the key in the host's configuration; empty if the configuration was not completed.
	KeyHash string
	// Version is the version of the operator that last configured the host; empty if the configuration was not
	// completed.
	Version string
	// Ready is true while the node works and the operator lets the node accept pods.
	Ready bool
	// Changing is true while the operator changes the host and has cordoned the Node for the change.
	Changing bool
}

// KeyChange holds the facts about the key that hosts must accept.
type KeyChange struct {
	// Current and Previous are hashes of public keys. Previous is empty if the administrator has provided none.
	Current, Previous string
	// Known is the time since the operator first read this pair of keys.
	Known time.Duration
	// UserData is true if new Machines accept the current key.
	UserData bool
}

// Replacements lists the Machines to delete, so that their MachineSets create new ones. A Machine is in at most one
// list.
type Replacements struct {
	// Candidates may be replaced, in this order, as soon as their nodes may be disrupted.
	Candidates []Candidate
	// Waiting must be replaced as well, but not yet.
	Waiting []Waiting
	// NotReplaced are Machines that must be replaced but that the operator does not replace, with the reasons.
	NotReplaced map[string]string
}

// Candidate is a Machine that may be replaced.
type Candidate struct {
	// Machine and Set are names.
	Machine, Set string
	// Cause is CauseUpgrade or CauseKeyChange. A Machine with both causes is replaced once.
	Cause v1alpha1.DisruptionCause
}

// Waiting is a Machine that cannot be replaced yet, with the failed check and the reason.
type Waiting struct {
	Candidate
	Check, Message string
}

// Next decides which Machines to replace because their hosts were configured with another key, or by another version
// of the operator, and therefore differ from the spec. disruption.Allow decides whether the nodes may be disrupted
// now; Next decides whether deleting a Machine would result in another working Machine. No Machine is deleted if the
// successor would be refused. A Machine that was never configured is never replaced, because the user data may still
// be running. While a Machine of a MachineSet has failed, no Machine of that set is replaced: the failed Machine may
// be the last replacement, and the next could fail too, until no Machine is left.
func Next(fleet Fleet, version string, change KeyChange) Replacements {
	s := subject{fleet: fleet, version: version, change: change, nodes: map[string]Node{}, sets: map[string]MachineSet{}}
	for _, node := range fleet.Nodes {
		s.nodes[node.Name] = node
	}
	for _, set := range fleet.Sets {
		s.sets[set.Name] = set
	}
	result := Replacements{NotReplaced: map[string]string{}}
	for _, machine := range slices.SortedFunc(slices.Values(fleet.Machines), s.compareByPriority) {
		cause := s.replacementCause(machine)
		if cause == "" {
			continue
		}
		if why := s.notReplacedReason(machine); why != "" {
			result.NotReplaced[machine.Name] = why
			continue
		}
		s.machine = machine
		candidate := Candidate{Machine: machine.Name, Set: machine.Set, Cause: cause}
		decision := policy.Decide(s, "", []policy.Check[subject]{
			{Name: ClusterUnsupported, Violation: clusterRefused},
			{Name: MachineUnsupported, Violation: nameRefused},
			{Name: ImageUnsupported, Violation: imageRefused},
			{Name: "MachineNotRunning", Violation: machineNotRunning},
			{Name: "UserDataOutdated", Violation: userDataOutdated},
			{Name: "InPlaceChangePending", Violation: inPlaceChangePending},
			{Name: "NodeChanging", Violation: nodeChanging},
			{Name: "SurplusMachines", Violation: surplusMachines},
			{Name: "MachineFailed", Violation: machineHasFailed},
		})
		if !decision.Allowed {
			result.Waiting = append(result.Waiting, Waiting{candidate, decision.Check, decision.Message})
			continue
		}
		result.Candidates = append(result.Candidates, candidate)
	}
	return result
}

type subject struct {
	fleet   Fleet
	version string
	change  KeyChange
	nodes   map[string]Node
	sets    map[string]MachineSet
	// machine is the subject of the current decision.
	machine Machine
}

// replacementCause returns the reason for replacing a Machine; empty if there is none. A Machine that is being
// deleted anyway is not outdated. A failed Machine is left to its repair.
func (s subject) replacementCause(m Machine) v1alpha1.DisruptionCause {
	set, known := s.sets[m.Set]
	switch {
	case m.Node == "", m.Phase == machinev1beta1.PhaseFailed, m.Ignored, isDeleting(m), set.Deleting:
		return ""
	case known && s.hasOtherVersion(m):
		return v1alpha1.CauseUpgrade
	case s.hasOtherKey(m):
		return v1alpha1.CauseKeyChange
	}
	return ""
}

// hasOtherVersion reports whether a Machine's host was configured by another version of the operator and must be
// replaced for this reason. A different version alone is not enough: if nothing else differs, only the annotation is
// updated. R-146
func (s subject) hasOtherVersion(m Machine) bool {
	version := s.nodes[m.Node].Version
	return m.NeedsReplacement && s.version != "" && version != "" && version != s.version
}

// hasOtherKey reports whether a Machine's host was configured with another key. R-030
func (s subject) hasOtherKey(m Machine) bool {
	hash := s.nodes[m.Node].KeyHash
	return hash != "" && hash != s.change.Current
}

func isDeleting(m Machine) bool { return m.Deleting || m.Phase == machinev1beta1.PhaseDeleting }

// notReplacedReason returns the reason why the operator does not replace an outdated Machine; empty if it does.
func (s subject) notReplacedReason(m Machine) string {
	set, known := s.sets[m.Set]
	switch {
	case m.Paused:
		return "Its WindowsInstance is paused."
	case !known:
		return "No MachineSet would replace the Machine. Add the current key on its host, or drain its node and delete the Machine."
	case set.ExternalKey && s.hasOtherKey(m):
		return fmt.Sprintf("The Machines of MachineSet %s get their key from a template or from their own user data, so the operator does not know the key "+
			"that a new Machine accepts. Add the previous key to the Secret, so that the operator installs the current key on the host; "+
			"or add the current key to the template or the user data, and delete this Machine.", set.Name)
	}
	return ""
}

// compareByPriority compares Machines by priority. A Machine with a slot is first, because no other Machine gets a slot
// before its replacement. A Machine without a working Node is next, because its loss removes no capacity.
func (s subject) compareByPriority(a, b Machine) int {
	rank := func(m Machine) int {
		switch {
		case m.HasSlot:
			return 0
		case !s.nodes[m.Node].Ready:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

// machineNotRunning detects a Machine that the Machine API still works on.
func machineNotRunning(s subject) string {
	if s.machine.Phase == machinev1beta1.PhaseRunning {
		return ""
	}
	return fmt.Sprintf("Machine %s does not run yet: its phase is %q.", s.machine.Name, s.machine.Phase)
}

// userDataOutdated keeps a Machine if the successor would not accept the key. If the key comes from another source,
// the host accepts the current key, and so does the successor.
func userDataOutdated(s subject) string {
	if s.change.UserData || s.sets[s.machine.Set].ExternalKey {
		return ""
	}
	return "The user data does not have the current key yet: a new Machine would not accept it."
}

// inPlaceChangePending detects a host that may still accept the key without a replacement of the Machine, if the key is
// the only reason for the replacement.
func inPlaceChangePending(s subject) string {
	if s.hasOtherVersion(s.machine) || s.change.Known >= InPlaceTimeout {
		return ""
	}
	why := "its host has not rejected the current key yet"
	switch {
	case s.change.Previous != "" && s.nodes[s.machine.Node].KeyHash == s.change.Previous:
		why = "its host accepts the previous key, and the operator installs the current key with it"
	case s.machine.Refused:
		return ""
	}
	return fmt.Sprintf("Machine %s is not replaced during the first %s after the change of the key: %s.", s.machine.Name, policy.ShortDuration(InPlaceTimeout), why)
}

// nodeChanging detects a host that the operator is changing. This does not apply if the Machine must be replaced for
// another version, or if the host has refused the key: the started change cannot complete on this host.
func nodeChanging(s subject) string {
	if !s.nodes[s.machine.Node].Changing || s.machine.Refused || s.hasOtherVersion(s.machine) {
		return ""
	}
	return fmt.Sprintf("Node %s is being changed.", s.machine.Node)
}

// surplusMachines detects a MachineSet that would not create another Machine.
func surplusMachines(s subject) string {
	set := s.sets[s.machine.Set]
	if set.Machines <= set.Replicas {
		return ""
	}
	message := fmt.Sprintf("MachineSet %s has %d Machines, and must have %d.", set.Name, set.Machines, set.Replicas)
	for _, m := range s.fleet.Machines {
		if m.Set == set.Name && isDeleting(m) {
			message += fmt.Sprintf(" Machine %s is still being deleted; see its conditions.", m.Name)
		}
	}
	return message
}

// machineHasFailed detects a failed Machine of the same MachineSet.
func machineHasFailed(s subject) string {
	for _, m := range s.fleet.Machines {
		if m.Set == s.machine.Set && m.Phase == machinev1beta1.PhaseFailed && !m.Ignored {
			return fmt.Sprintf("Machine %s of MachineSet %s has failed, and a replacement may fail in the same way. Check its status, then delete it or set the ignore label.",
				m.Name, m.Set)
		}
	}
	return ""
}
