package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// InPlaceWait is how long the present key may be known before a Machine is replaced whose host may yet take the key without that.
const InPlaceWait = 10 * time.Minute

// Phases of Machines.
const (
	machineRunning  = "Running"
	machineFailed   = "Failed"
	machineDeleting = "Deleting"
)

// Fleet is what replacing a Machine depends on: the Windows Machines of a cluster, the MachineSets that make them, and the Windows Nodes.
type Fleet struct {
	Machines []FleetMachine
	Sets     []FleetSet
	Nodes    []FleetNode
}

// FleetMachine is a Windows Machine.
type FleetMachine struct {
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
}

// FleetSet is a MachineSet with Windows Machines.
type FleetSet struct {
	Name string
	// Replicas is how many Machines it is to have, and Machines how many there are, of whatever label.
	Replicas, Machines int
	Deleting           bool
	// OwnKey is true when the key of its Machines comes from elsewhere than the operator's user data: from another one, or from a template.
	OwnKey bool
}

// FleetNode is a Windows Node.
type FleetNode struct {
	Name string
	// KeyHash identifies the key that its host was configured with; empty when it was not configured to its end.
	KeyHash string
	// Ready is true when the node works and takes pods as far as the operator is concerned.
	Ready bool
	// Changing is true while the operator changes something on its host and has made it unschedulable for that.
	Changing bool
}

// KeyChange is what is known of the key that hosts must accept.
type KeyChange struct {
	// Present and Previous are hashes of public keys. Previous is empty when the administrator has given none.
	Present, Previous string
	// Known is for how long the present key has been known.
	Known time.Duration
	// UserData is true when new Machines accept the present key.
	UserData bool
}

// Replacement says which Machine may be deleted now, so that its MachineSet makes another one.
type Replacement struct {
	// Machine may be deleted now. Empty: none, and Check and Message say why, unless no Machine is outdated.
	Machine        string
	Check, Message string
	// Outdated are the Machines that have another key and will be replaced, unless their hosts take the key before.
	Outdated []string
	// Left are the Machines that have another key and will not be replaced, with the reason in words.
	Left map[string]string
}

// NextReplacement decides which Machine is to be replaced next because its host was configured with another key than the present one.
// One is replaced at a time, over all MachineSets, and only while everything else is at rest: a fleet that is not whole is not made smaller. A
// Machine that was never configured is never replaced, for its user data may be at work. While one has failed none is replaced: it may be the
// one that was to take the place of the last, and where that fails the next would too, one after another until none is left.
func NextReplacement(fleet Fleet, change KeyChange) Replacement {
	s := replacementSubject{fleet: fleet, change: change, nodes: map[string]FleetNode{}, sets: map[string]FleetSet{}}
	for _, node := range fleet.Nodes {
		s.nodes[node.Name] = node
	}
	for _, set := range fleet.Sets {
		s.sets[set.Name] = set
	}
	result := Replacement{Left: map[string]string{}}
	for _, machine := range fleet.Machines {
		if !s.outdated(machine) {
			continue
		}
		if why := s.staysBecause(machine); why != "" {
			result.Left[machine.Name] = why
			continue
		}
		s.candidates = append(s.candidates, machine)
	}
	if len(s.candidates) == 0 {
		return result
	}
	s.choose()
	for _, candidate := range s.candidates {
		result.Outdated = append(result.Outdated, candidate.Name)
	}
	slices.Sort(result.Outdated)
	decision := decide(s, "", []check[replacementSubject]{
		{"UserData", "", userDataOutdated},
		{"InPlace", "", mayTakeKeyInPlace},
		{"MachineBusy", "", machineBusy},
		{"MachineFailed", "", machineHasFailed},
		{"Replicas", "", setIncomplete},
		{"NodeBusy", "", nodeBusy},
		{"LastRunning", "", lastRunning},
	})
	if decision.Allowed {
		result.Machine = s.candidate.Name
	}
	result.Check, result.Message = decision.Check, decision.Message
	return result
}

type replacementSubject struct {
	fleet      Fleet
	change     KeyChange
	nodes      map[string]FleetNode
	sets       map[string]FleetSet
	candidates []FleetMachine
	// candidate is the one of them whose turn it is.
	candidate FleetMachine
}

// outdated tells whether a Machine's host was configured, and with another key. A Machine that goes anyway is not outdated; one that has
// failed is for whoever repairs it.
func (s replacementSubject) outdated(m FleetMachine) bool {
	hash := s.nodes[m.Node].KeyHash
	other := m.Node != "" && hash != "" && hash != s.change.Present
	return other && m.Phase != machineFailed && !m.Ignored && !going(m) && !s.sets[m.Set].Deleting
}

func going(m FleetMachine) bool { return m.Deleting || m.Phase == machineDeleting }

// staysBecause says why an outdated Machine is not replaced by the operator; empty when it is.
func (s replacementSubject) staysBecause(m FleetMachine) string {
	set, known := s.sets[m.Set]
	switch {
	case m.Paused:
		return "Its WindowsInstance is paused."
	case !known:
		return "No MachineSet would make it again. Give its host the present key, or delete the Machine when its work has another place."
	case set.OwnKey:
		return fmt.Sprintf("The Machines of MachineSet %s get their key from a template or from user data of their own, so that the operator does not know which key "+
			"a new one would accept. Give the host the present key by means of the previous one; or put the present key where new Machines get theirs from, "+
			"and delete this one.", set.Name)
	}
	return ""
}

// choose picks whose turn it is. A Machine whose Node does not work goes first: its loss takes nothing from the cluster.
func (s *replacementSubject) choose() {
	rank := func(m FleetMachine) int {
		switch {
		case s.waitsInPlace(m) != "":
			return 2
		case s.nodes[m.Node].Ready:
			return 1
		}
		return 0
	}
	slices.SortFunc(s.candidates, func(a, b FleetMachine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	s.candidate = s.candidates[0]
}

// waitsInPlace says why a Machine's host may yet take the key without being replaced.
func (s replacementSubject) waitsInPlace(m FleetMachine) string {
	switch {
	case s.change.Known >= InPlaceWait:
		return ""
	case s.change.Previous != "" && s.nodes[m.Node].KeyHash == s.change.Previous:
		return "its host accepts the previous key, by which it is to be given the present one"
	case m.Refused:
		return ""
	}
	return "its host has not refused the present key yet"
}

func userDataOutdated(s replacementSubject) string {
	if s.change.UserData {
		return ""
	}
	return "The user data does not have the present key yet: a new Machine would not accept it."
}

func mayTakeKeyInPlace(s replacementSubject) string {
	why := s.waitsInPlace(s.candidate)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("Machine %s is not replaced before the key is known for %s: %s.", s.candidate.Name, InPlaceWait, why)
}

// machineBusy finds a Machine that the Machine API makes or deletes.
func machineBusy(s replacementSubject) string {
	for _, m := range s.fleet.Machines {
		switch {
		case m.Ignored:
		case going(m):
			return fmt.Sprintf("Machine %s is being deleted.", m.Name)
		case m.Phase != machineRunning && m.Phase != machineFailed:
			return fmt.Sprintf("Machine %s does not run yet: its phase is %q.", m.Name, m.Phase)
		}
	}
	return ""
}

// machineHasFailed finds a Machine that the Machine API gave up.
func machineHasFailed(s replacementSubject) string {
	for _, m := range s.fleet.Machines {
		if m.Phase == machineFailed && !m.Ignored {
			return fmt.Sprintf("Machine %s has failed, and another may fail in the same way. See what it says; delete it, or have the operator ignore it.", m.Name)
		}
	}
	return ""
}

// setIncomplete finds a MachineSet whose Machines are being made or taken away: also the moment between the end of one Machine and the
// beginning of the next.
func setIncomplete(s replacementSubject) string {
	for _, set := range s.fleet.Sets {
		if !set.Deleting && set.Machines != set.Replicas {
			return fmt.Sprintf("MachineSet %s has %d Machines, and is to have %d.", set.Name, set.Machines, set.Replicas)
		}
	}
	return ""
}

// nodeBusy finds a Node that does not work, or is being changed. That a Node does not work is no reason to keep its own Machine, nor one
// that is outdated as well. Nobody waits for the Nodes of Machines that are ignored.
func nodeBusy(s replacementSubject) string {
	ignored, outdated := map[string]bool{}, map[string]bool{}
	for _, m := range s.candidates {
		outdated[m.Node] = true
	}
	for _, m := range s.fleet.Machines {
		if m.Ignored {
			ignored[m.Node] = true
			continue
		}
		if _, known := s.nodes[m.Node]; !known {
			return fmt.Sprintf("Machine %s runs, and has no Node.", m.Name)
		}
	}
	for _, node := range s.fleet.Nodes {
		switch {
		case ignored[node.Name]:
		case node.Changing:
			return fmt.Sprintf("Node %s is being changed.", node.Name)
		case !node.Ready && !outdated[node.Name]:
			return fmt.Sprintf("Node %s does not work.", node.Name)
		}
	}
	return ""
}

// lastRunning keeps one Machine of a MachineSet at work, unless there is none besides that could be. R-148
func lastRunning(s replacementSubject) string {
	others := 0
	for _, m := range s.fleet.Machines {
		if m.Set != s.candidate.Set || m.Name == s.candidate.Name || m.Ignored {
			continue
		}
		if m.Phase == machineRunning && s.nodes[m.Node].Ready {
			return ""
		}
		others++
	}
	if others == 0 || !s.nodes[s.candidate.Node].Ready {
		return ""
	}
	return fmt.Sprintf("Machine %s is the last of MachineSet %s that works.", s.candidate.Name, s.candidate.Set)
}
