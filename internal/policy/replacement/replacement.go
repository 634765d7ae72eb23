// Package replacement decides which Machines are replaced, because their hosts have another key or another version. It
// does not decide whether a node may be disrupted now.
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

// InPlaceWait is how long after a change of the key a Machine is not replaced while its host may still take the new key
// in place.
const InPlaceWait = 10 * time.Minute

// Fleet holds the facts for replacing Machines: the Windows Machines of a cluster, the MachineSets that make them, and
// their Nodes.
type Fleet struct {
	Machines []Machine
	Sets     []MachineSet
	Nodes    []Node
	// ClusterRefusal is why no further host can be a node of the cluster; empty when hosts can.
	ClusterRefusal string
}

// Machine is a Windows Machine.
type Machine struct {
	Name, Phase string
	// Set names the MachineSet that controls it; empty when there is none.
	Set string
	// Node names its Node; empty when it has none.
	Node string
	// Deleting is true when its deletion was asked for.
	Deleting bool
	// Ignored is true when the operator is to leave it alone; Paused when its instance is to be left alone for a time.
	Ignored, Paused bool
	// Refused is true when its host was tried with the present key, and refused it.
	Refused bool
	// Awaits is true when its host was seen to be other than the operator's version wants it, and is to be brought to that
	// by being replaced.
	Awaits bool
	// NameRefusal is why a host of a Machine with a name of this length cannot be a node; empty when it can.
	NameRefusal string
	// Image identifies the image in its providerSpec, Created is when it was created.
	Image   string
	Created time.Time
	// Build is the Windows build of its host; empty while that is unknown. BuildRefusal is why a new host with the build
	// would be refused; empty when it would not.
	Build, BuildRefusal string
}

// MachineSet is a MachineSet with Windows Machines.
type MachineSet struct {
	Name string
	// Replicas is how many Machines it is to have, and Machines how many there are, of whatever label.
	Replicas, Machines int
	Deleting           bool
	// OwnKey is true when the key of its Machines comes from elsewhere than the operator's user data: from another one, or
	// from a template.
	OwnKey bool
	// Image identifies the image of its next Machine.
	Image string
}

// Node is the Node of a Windows Machine.
type Node struct {
	Name string
	// KeyHash identifies the key that its host was configured with; empty when it was not configured to its end.
	KeyHash string
	// Version is the operator's that has configured it last; empty when it was not configured to its end.
	Version string
	// Ready is true when the node works and takes pods as far as the operator is concerned.
	Ready bool
	// Changing is true while the operator changes something on its host and has made it unschedulable for that.
	Changing bool
}

// KeyChange holds the facts about the key that hosts must accept.
type KeyChange struct {
	// Present and Previous are hashes of public keys. Previous is empty when the administrator has given none.
	Present, Previous string
	// Known is for how long the present key has been known.
	Known time.Duration
	// UserData is true when new Machines accept the present key.
	UserData bool
}

// Replacements lists the Machines to delete, so that their MachineSets make others. A Machine is in one list at most.
type Replacements struct {
	// Candidates may go, in this order, as soon as their nodes may be disturbed.
	Candidates []Candidate
	// Waiting are to go as well, but not yet.
	Waiting []Waiting
	// Left will not be replaced by the operator, though their hosts have another key, with the reason in words.
	Left map[string]string
}

// Candidate is a Machine that may be replaced.
type Candidate struct {
	// Machine and Set are names.
	Machine, Set string
	// Cause is CauseUpgrade or CauseKeyChange. One that has both is replaced once.
	Cause v1alpha1.DisruptionCause
}

// Waiting is a Machine that cannot be replaced yet, with the check that keeps it and the reason in words.
type Waiting struct {
	Candidate
	Check, Message string
}

// Next decides which Machines to replace because their hosts were configured with another key, or by another version of
// the operator, and therefore differ from their spec. disruption.Allow decides whether their nodes may be disturbed
// now; Next decides whether deleting a Machine would bring another one that works: none is deleted whose successor would
// be refused. A Machine that was never configured
// is never replaced, because its user data may be at work. While a Machine of a MachineSet has failed, none of that set
// is replaced: it may be the replacement of the last one, and the next could fail too, one after another until none is
// left.
func Next(fleet Fleet, version string, change KeyChange) Replacements {
	s := subject{fleet: fleet, version: version, change: change, nodes: map[string]Node{}, sets: map[string]MachineSet{}}
	for _, node := range fleet.Nodes {
		s.nodes[node.Name] = node
	}
	for _, set := range fleet.Sets {
		s.sets[set.Name] = set
	}
	result := Replacements{Left: map[string]string{}}
	for _, machine := range slices.SortedFunc(slices.Values(fleet.Machines), s.byTurn) {
		cause := s.cause(machine)
		if cause == "" {
			continue
		}
		if why := s.staysBecause(machine); why != "" {
			result.Left[machine.Name] = why
			continue
		}
		s.machine = machine
		candidate := Candidate{Machine: machine.Name, Set: machine.Set, Cause: cause}
		decision := policy.Decide(s, "", []policy.Check[subject]{
			{Name: ClusterUnsupported, Broken: clusterRefuses},
			{Name: MachineUnsupported, Broken: nameRefused},
			{Name: ImageUnsupported, Broken: imageRefused},
			{Name: "Phase", Broken: doesNotRun},
			{Name: "UserData", Broken: userDataOutdated},
			{Name: "InPlace", Broken: mayTakeKeyInPlace},
			{Name: "NodeBusy", Broken: nodeIsChanged},
			{Name: "Surplus", Broken: setShrinks},
			{Name: "MachineFailed", Broken: machineHasFailed},
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
	// machine is the one that is decided on.
	machine Machine
}

// cause is why a Machine is to be replaced; empty when it is not. A Machine that goes anyway is not outdated; one that
// has failed is for whoever repairs it.
func (s subject) cause(m Machine) v1alpha1.DisruptionCause {
	set, known := s.sets[m.Set]
	switch {
	case m.Node == "", m.Phase == machinev1beta1.PhaseFailed, m.Ignored, going(m), set.Deleting:
		return ""
	case known && s.otherVersion(m):
		return v1alpha1.CauseUpgrade
	case s.otherKey(m):
		return v1alpha1.CauseKeyChange
	}
	return ""
}

// otherVersion reports whether a Machine's host was configured by another version of the operator, and is to be
// replaced for it. That the version differs is not enough: where nothing else does, only the annotation is brought up
// to date. R-146
func (s subject) otherVersion(m Machine) bool {
	version := s.nodes[m.Node].Version
	return m.Awaits && s.version != "" && version != "" && version != s.version
}

// otherKey reports whether a Machine's host was configured, and with another key. R-030
func (s subject) otherKey(m Machine) bool {
	hash := s.nodes[m.Node].KeyHash
	return hash != "" && hash != s.change.Present
}

func going(m Machine) bool { return m.Deleting || m.Phase == machinev1beta1.PhaseDeleting }

// staysBecause says why an outdated Machine is not replaced by the operator; empty when it is.
func (s subject) staysBecause(m Machine) string {
	set, known := s.sets[m.Set]
	switch {
	case m.Paused:
		return "Its WindowsInstance is paused."
	case !known:
		return "No MachineSet would replace it. Add the current key to its host, or delete the Machine after you have moved its workload."
	case set.OwnKey && s.otherKey(m):
		return fmt.Sprintf("The Machines of MachineSet %s get their key from a template or from user data of their own, so that the operator does not know which key "+
			"a new one would accept. Give the host the current key by means of the previous one; or put the current key where new Machines get theirs from, "+
			"and delete this one.", set.Name)
	}
	return ""
}

// byTurn sorts Machines by whose turn it is. One whose Node does not work goes first: its loss takes nothing from the
// cluster.
func (s subject) byTurn(a, b Machine) int {
	rank := func(m Machine) int {
		if s.nodes[m.Node].Ready {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

// doesNotRun finds a Machine that the Machine API is still at work on.
func doesNotRun(s subject) string {
	if s.machine.Phase == machinev1beta1.PhaseRunning {
		return ""
	}
	return fmt.Sprintf("Machine %s does not run yet: its phase is %q.", s.machine.Name, s.machine.Phase)
}

// userDataOutdated keeps Machines that would be followed by one which does not accept the key. Where the key comes from
// elsewhere, the host accepts the present one, and so will the next.
func userDataOutdated(s subject) string {
	if s.change.UserData || s.sets[s.machine.Set].OwnKey {
		return ""
	}
	return "The user data does not have the current key yet: a new Machine would not accept it."
}

// mayTakeKeyInPlace finds a Machine whose host may yet take the key without being replaced, where that is the only
// reason to replace it.
func mayTakeKeyInPlace(s subject) string {
	if s.otherVersion(s.machine) || s.change.Known >= InPlaceWait {
		return ""
	}
	why := "its host has not refused the current key yet"
	switch {
	case s.change.Previous != "" && s.nodes[s.machine.Node].KeyHash == s.change.Previous:
		why = "its host accepts the previous key, by which it is to be given the current one"
	case s.machine.Refused:
		return ""
	}
	return fmt.Sprintf("Machine %s is not replaced until the operator has known the key for %s: %s.", s.machine.Name, InPlaceWait, why)
}

// nodeIsChanged finds a Machine whose host the operator is at work on. It is not where it waits for another host, or
// where the host has refused its key: what it began there does not come to an end in place.
func nodeIsChanged(s subject) string {
	if !s.nodes[s.machine.Node].Changing || s.machine.Refused || s.otherVersion(s.machine) {
		return ""
	}
	return fmt.Sprintf("Node %s is being changed.", s.machine.Node)
}

// setShrinks finds a MachineSet that would not make another Machine.
func setShrinks(s subject) string {
	set := s.sets[s.machine.Set]
	if set.Machines <= set.Replicas {
		return ""
	}
	message := fmt.Sprintf("MachineSet %s has %d Machines, and must have %d.", set.Name, set.Machines, set.Replicas)
	for _, m := range s.fleet.Machines {
		if m.Set == set.Name && going(m) {
			message += fmt.Sprintf(" Machine %s is still being deleted; see its conditions.", m.Name)
		}
	}
	return message
}

// machineHasFailed finds a Machine of the same MachineSet that the Machine API gave up.
func machineHasFailed(s subject) string {
	for _, m := range s.fleet.Machines {
		if m.Set == s.machine.Set && m.Phase == machinev1beta1.PhaseFailed && !m.Ignored {
			return fmt.Sprintf("Machine %s of MachineSet %s has failed, and another may fail in the same way. Check its status, then delete it or have the operator ignore it.",
				m.Name, m.Set)
		}
	}
	return ""
}
