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

// maxUnavailableReached checks the limit of all nodes. Nodes that are not Ready without a disruption count only if
// they are in the candidate's pool.
func maxUnavailableReached(s *decisionInput) string {
	unavailable := append(s.disruptedNodes(func(string) bool { return true }), s.notReady()...)
	return s.limitViolation(unavailable, s.totalLimit(), "of all Windows nodes")
}

// poolMaxUnavailableReached checks the limit of the candidate's pool. Machines that the MachineSet lacks count as well.
func poolMaxUnavailableReached(s *decisionInput) string {
	pool := s.candidate.Pool
	if pool == "" {
		return ""
	}
	unavailable := append(s.disruptedNodes(func(p string) bool { return p == pool }), s.notReady()...)
	return s.limitViolation(append(unavailable, s.missingMachines()...), s.poolLimit(), "of pool "+pool)
}

func (s *decisionInput) totalLimit() int {
	return s.settings.MaxUnavailable.Of(s.countNodes(func(string) bool { return true }))
}

// poolLimit returns the limit of the candidate's pool, which defaults to the limit of all nodes.
func (s *decisionInput) poolLimit() int {
	own := s.settings.Pools[s.candidate.Pool].MaxUnavailable
	if own == nil {
		return s.totalLimit()
	}
	return own.Of(s.countNodes(func(pool string) bool { return pool == s.candidate.Pool }))
}

// countNodes returns the number of nodes in service, including the nodes of Machines that the operator has deleted:
// otherwise the base of a percentage would shrink with each disruption.
func (s *decisionInput) countNodes(of func(pool string) bool) int {
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

func (s *decisionInput) disruptedNodes(of func(pool string) bool) []unavailableNode {
	var list []unavailableNode
	for _, d := range s.entries {
		if of(d.Pool) {
			list = append(list, unavailableNode{d.describeDisruption(), d.until})
		}
	}
	return list
}

// notReady returns the nodes of the candidate's pool that are not Ready although no disruption is in progress. After
// failureDeadline they have failed and no longer count, unless stopOnFailure is set.
func (s *decisionInput) notReady() []unavailableNode {
	if s.isExempt() {
		return nil
	}
	var list []unavailableNode
	for _, n := range s.pool.Nodes {
		if n.Pool != s.candidate.Pool || n.Instance == s.Instance || n.Ready || n.Gone || s.hasActiveEntry(n.Instance) {
			continue
		}
		node := unavailableNode{what: fmt.Sprintf("%s has not been Ready since %s", n.describeWithPool(), formatTime(n.Since))}
		if !s.settings.StopOnFailure {
			if n.isOverdue(s.settings, s.now) {
				continue
			}
			node.until = n.Since.Add(s.settings.FailureDeadline)
		}
		list = append(list, node)
	}
	return list
}

// missingMachines returns the Machines that the candidate's MachineSet lacks, without Machines that already count by
// their entries.
func (s *decisionInput) missingMachines() []unavailableNode {
	set, found := s.machineSet()
	if !found || s.isExempt() {
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

func (s *decisionInput) machineSet() (MachineSet, bool) {
	return findFirst(s.pool.MachineSets, func(m MachineSet) bool {
		return MachineSetPool(m.Name) == s.candidate.Pool
	})
}

// limitViolation describes the nodes that use up the limit. It returns "" if the limit allows the candidate.
func (s *decisionInput) limitViolation(unavailable []unavailableNode, limit int, of string) string {
	if len(unavailable)+1 <= limit {
		return ""
	}
	var words []string
	for _, u := range unavailable {
		s.retryAt(u.until)
		if !slices.Contains(words, u.what) {
			words = append(words, u.what)
		}
	}
	message := fmt.Sprintf("%s; %s, %d may be unavailable at the same time.", listSome(words), of, limit)
	if !s.retryTime.IsZero() {
		message += fmt.Sprintf(" This node follows when a disruption slot is free, or by %s if the other nodes have not recovered by then.", formatTime(s.retryTime))
	}
	return message
}

// lastAvailableMachine keeps one Machine of each MachineSet running if the set has more than one. R-148
func lastAvailableMachine(s *decisionInput) string {
	set, found := s.machineSet()
	if !found || !s.candidate.Ready || s.candidate.Gone {
		return ""
	}
	others := max(set.Replicas, len(set.Staying))-1-set.Failed > 0
	for _, n := range s.pool.Nodes {
		if n.Pool != s.candidate.Pool || n.Instance == s.Instance || n.Gone {
			continue
		}
		if n.Ready && !s.hasActiveEntry(n.Instance) && !s.isMachineDeleted(n, set) {
			return ""
		}
		others = true
	}
	if !others {
		return ""
	}
	for _, d := range s.entries {
		s.retryAt(d.until)
	}
	return fmt.Sprintf("%s is the only available node of MachineSet %s. It waits until another node is available.",
		s.candidate.describeWithPool(), set.Name)
}

// isMachineDeleted reports whether the operator has deleted the Machine of a node, regardless of the time since then.
func (s *decisionInput) isMachineDeleted(n Node, set MachineSet) bool {
	return slices.ContainsFunc(s.failedEntries, func(d timedDisruption) bool {
		return d.Instance == n.Instance && d.Machine != "" && !slices.Contains(set.Staying, d.Machine)
	})
}
