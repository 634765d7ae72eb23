package disruption

import (
	"fmt"
	"slices"
	"time"
)

// unavailableNode is what takes up a place of a limit, in words, and until when at the latest; zero: until something
// happens.
type unavailableNode struct {
	what  string
	until time.Time
}

// withinLimit returns the limit of all nodes. Of nodes that are not Ready without the operator's doing, those of the
// candidate's pool count.
func withinLimit(s *scene) string {
	unavailable := append(s.disturbed(func(string) bool { return true }), s.notReady()...)
	return s.spent(unavailable, s.limit(), "of all Windows nodes")
}

// withinPoolLimit returns the limit of the candidate's pool, in which Machines count besides that a MachineSet lacks.
func withinPoolLimit(s *scene) string {
	pool := s.candidate.Pool
	if pool == "" {
		return ""
	}
	unavailable := append(s.disturbed(func(p string) bool { return p == pool }), s.notReady()...)
	return s.spent(append(unavailable, s.missing()...), s.poolLimit(), "of pool "+pool)
}

func (s *scene) limit() int {
	return s.settings.MaxUnavailable.Of(s.nodes(func(string) bool { return true }))
}

// poolLimit returns the limit of the candidate's pool: that of all nodes, unless it has one of its own.
func (s *scene) poolLimit() int {
	own := s.settings.Pools[s.candidate.Pool].MaxUnavailable
	if own == nil {
		return s.limit()
	}
	return own.Of(s.nodes(func(pool string) bool { return pool == s.candidate.Pool }))
}

// nodes is how many are in service, with those whose Machines the operator has deleted: a percentage does not shrink by
// being used.
func (s *scene) nodes(of func(pool string) bool) int {
	count, listed := 0, map[string]bool{}
	for _, n := range s.pool.Nodes {
		if n.Gone {
			continue
		}
		if listed[n.Instance] = true; of(n.Pool) {
			count++
		}
	}
	for _, d := range s.entries {
		if d.Machine != "" && !listed[d.Instance] && of(d.Pool) {
			count++
		}
	}
	return count
}

func (s *scene) disturbed(of func(pool string) bool) []unavailableNode {
	var list []unavailableNode
	for _, d := range s.entries {
		if of(d.Pool) {
			list = append(list, unavailableNode{d.describe(), d.until})
		}
	}
	return list
}

// notReady returns the nodes of the candidate's pool that do not work though nobody disturbs them. After
// failureDeadline they have failed, and count no more, unless failures are to stop everything.
func (s *scene) notReady() []unavailableNode {
	if s.exempt() {
		return nil
	}
	var list []unavailableNode
	for _, n := range s.pool.Nodes {
		if n.Pool != s.candidate.Pool || n.Instance == s.Instance || n.Ready || n.Gone || s.busy(n.Instance) {
			continue
		}
		node := unavailableNode{what: fmt.Sprintf("%s has not been Ready since %s", n.describe(), moment(n.Since))}
		if !s.settings.StopOnFailure {
			if n.overdue(s.settings, s.now) {
				continue
			}
			node.until = n.Since.Add(s.settings.FailureDeadline)
		}
		list = append(list, node)
	}
	return list
}

// missing returns the Machines that the candidate's MachineSet lacks, but for those that have entries and so are
// counted already.
func (s *scene) missing() []unavailableNode {
	set, found := s.machineSet()
	if !found || s.exempt() {
		return nil
	}
	count := set.Missing
	for _, d := range s.entries {
		if d.Machine != "" && d.Pool == s.candidate.Pool && !slices.Contains(set.Staying, d.Machine) {
			count--
		}
	}
	if count <= 0 {
		return nil
	}
	what := fmt.Sprintf("MachineSet %s lacks %d of its %d Machines, or they are being created or deleted (if the cloud does not create them, scale the MachineSet down)",
		set.Name, count, set.Replicas)
	return slices.Repeat([]unavailableNode{{what: what}}, count)
}

func (s *scene) machineSet() (MachineSet, bool) {
	return first(s.pool.MachineSets, func(m MachineSet) bool {
		return MachineSetPool(m.Name) == s.candidate.Pool
	})
}

// spent says who takes up the places when there is none left for the candidate.
func (s *scene) spent(unavailable []unavailableNode, limit int, of string) string {
	if len(unavailable)+1 <= limit {
		return ""
	}
	var words []string
	for _, u := range unavailable {
		s.askAgain(u.until)
		if !slices.Contains(words, u.what) {
			words = append(words, u.what)
		}
	}
	message := fmt.Sprintf("%s; %s, %d may be unavailable at a time.", listSome(words), of, limit)
	if !s.again.IsZero() {
		message += fmt.Sprintf(" This node follows when a disruption slot is free, or by %s if the other nodes have not recovered by then.", moment(s.again))
	}
	return message
}

// anotherRuns keeps one Machine of each MachineSet running, where there is another one at all. R-148
func anotherRuns(s *scene) string {
	set, found := s.machineSet()
	if !found || !s.candidate.Ready || s.candidate.Gone {
		return ""
	}
	others := max(set.Replicas, len(set.Staying))-1-set.Failed > 0
	for _, n := range s.pool.Nodes {
		if n.Pool != s.candidate.Pool || n.Instance == s.Instance || n.Gone {
			continue
		}
		if n.Ready && !s.busy(n.Instance) && !s.leaves(n, set) {
			return ""
		}
		others = true
	}
	if !others {
		return ""
	}
	for _, d := range s.entries {
		s.askAgain(d.until)
	}
	return fmt.Sprintf("%s is the only available node of MachineSet %s. It waits until another node is available.",
		s.candidate.describe(), set.Name)
}

// leaves reports whether the operator has deleted the Machine of a node, however long ago.
func (s *scene) leaves(n Node, set MachineSet) bool {
	return slices.ContainsFunc(s.notes, func(d standingDisruption) bool {
		return d.Instance == n.Instance && d.Machine != "" && !slices.Contains(set.Staying, d.Machine)
	})
}
