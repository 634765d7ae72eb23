package disruption

import (
	"fmt"
	"slices"
	"time"
)

// unavailableNode describes a node that counts against a limit until the given time. Zero means until another event.
type unavailableNode struct {
	what  string
	until time.Time
}

// withinLimit checks the limit of all nodes. Nodes that are not Ready without a disruption count only if they are in
// the candidate's pool.
func withinLimit(s *scene) string {
	unavailable := append(s.disturbed(func(string) bool { return true }), s.notReady()...)
	return s.spent(unavailable, s.limit(), "of all Windows nodes")
}

// withinPoolLimit checks the limit of the candidate's pool. Machines that the MachineSet lacks count as well.
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

// poolLimit returns the limit of the candidate's pool, which defaults to the limit of all nodes.
func (s *scene) poolLimit() int {
	own := s.settings.Pools[s.candidate.Pool].MaxUnavailable
	if own == nil {
		return s.limit()
	}
	return own.Of(s.nodes(func(pool string) bool { return pool == s.candidate.Pool }))
}

// nodes returns the number of nodes in service, including the nodes of Machines that the operator has deleted:
// otherwise the base of a percentage would shrink with each disruption.
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

// notReady returns the nodes of the candidate's pool that are not Ready although no disruption is in progress. After
// failureDeadline they have failed and no longer count, unless stopOnFailure is set.
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

// missing returns the Machines that the candidate's MachineSet lacks, without Machines that already count by their
// entries.
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

// spent describes the nodes that use up the limit. It returns "" if the limit allows the candidate.
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

// anotherRuns keeps one Machine of each MachineSet running if the set has more than one. R-148
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

// leaves reports whether the operator has deleted the Machine of a node, regardless of the time since then.
func (s *scene) leaves(n Node, set MachineSet) bool {
	return slices.ContainsFunc(s.notes, func(d standingDisruption) bool {
		return d.Instance == n.Instance && d.Machine != "" && !slices.Contains(set.Staying, d.Machine)
	})
}
