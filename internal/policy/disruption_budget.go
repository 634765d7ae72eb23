package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// unavailableNode is what takes up a place of a limit, in words, and until when at the latest; zero: until something happens.
type unavailableNode struct {
	what  string
	until time.Time
}

// withinLimit is the limit of all nodes. Of nodes that are not Ready without the operator's doing, those of the candidate's pool count.
func withinLimit(s *disruptionScene) string {
	unavailable := append(s.disturbed(func(string) bool { return true }), s.notReady()...)
	return s.spent(unavailable, s.limit(), "of all Windows nodes")
}

// withinPoolLimit is the limit of the candidate's pool, in which Machines count besides that a MachineSet lacks.
func withinPoolLimit(s *disruptionScene) string {
	pool := s.candidate.Pool
	if pool == "" {
		return ""
	}
	unavailable := append(s.disturbed(func(p string) bool { return p == pool }), s.notReady()...)
	return s.spent(append(unavailable, s.missing()...), s.poolLimit(), "of pool "+pool)
}

func (s *disruptionScene) limit() int {
	return s.settings.MaxUnavailable.of(s.nodes(func(string) bool { return true }))
}

// poolLimit is the limit of the candidate's pool: that of all nodes, unless it has one of its own.
func (s *disruptionScene) poolLimit() int {
	own := s.settings.Pools[s.candidate.Pool].MaxUnavailable
	if own == nil {
		return s.limit()
	}
	return own.of(s.nodes(func(pool string) bool { return pool == s.candidate.Pool }))
}

// nodes is how many are in service, with those whose Machines the operator has deleted: a percentage does not shrink by being used.
func (s *disruptionScene) nodes(of func(pool string) bool) int {
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

func (s *disruptionScene) disturbed(of func(pool string) bool) []unavailableNode {
	var list []unavailableNode
	for _, d := range s.entries {
		if of(d.Pool) {
			list = append(list, unavailableNode{d.describe(), d.until})
		}
	}
	return list
}

// notReady are the nodes of the candidate's pool that do not work though nobody disturbs them. After failureDeadline they have failed, and
// count no more, unless failures are to stop everything.
func (s *disruptionScene) notReady() []unavailableNode {
	if s.exempt() {
		return nil
	}
	var list []unavailableNode
	for _, n := range s.pool.Nodes {
		if n.Pool != s.candidate.Pool || n.Instance == s.Instance || n.Ready || n.Gone || s.busy(n.Instance) {
			continue
		}
		node := unavailableNode{what: fmt.Sprintf("%s is not Ready since %s", n.describe(), moment(n.Since))}
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

// missing are the Machines that the candidate's MachineSet lacks, but for those that have entries and so are counted already.
func (s *disruptionScene) missing() []unavailableNode {
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
	what := fmt.Sprintf("MachineSet %s lacks %d of its %d Machines, or they are being made or deleted", set.Name, count, set.Replicas)
	return slices.Repeat([]unavailableNode{{what: what}}, count)
}

func (s *disruptionScene) machineSet() (PooledMachines, bool) {
	return first(s.pool.MachineSets, func(m PooledMachines) bool { return MachineSetPool(m.Name) == s.candidate.Pool })
}

// spent says who takes up the places when there is none left for the candidate.
func (s *disruptionScene) spent(unavailable []unavailableNode, limit int, of string) string {
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
		message += fmt.Sprintf(" This node's turn comes when there is a place again, or by %s if they have not come back by then.", moment(s.again))
	}
	return message
}

// anotherRuns keeps one Machine of each MachineSet running, where there is another one at all. R-148
func anotherRuns(s *disruptionScene) string {
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
	return fmt.Sprintf("%s is the only one of MachineSet %s that works now. It waits until another one does.", s.candidate.describe(), set.Name)
}

// leaves reports whether the operator has deleted the Machine of a node, however long ago.
func (s *disruptionScene) leaves(n PooledNode, set PooledMachines) bool {
	return slices.ContainsFunc(s.notes, func(d standingDisruption) bool {
		return d.Instance == n.Instance && d.Machine != "" && !slices.Contains(set.Staying, d.Machine)
	})
}

// standingDisruption is an entry of status.disruptions, and until when it counts.
type standingDisruption struct {
	v1alpha1.Disruption
	until time.Time
}

// describe says what is done to the node: "Node win-a (MachineSet/workers) is being upgraded".
func (d standingDisruption) describe() string {
	name := PooledNode{Instance: d.Instance, Node: d.Node, Pool: d.Pool}.describe()
	if d.Machine != "" {
		return fmt.Sprintf("%s is being replaced since %s", name, moment(d.Since.Time))
	}
	what := map[v1alpha1.DisruptionCause]string{
		v1alpha1.CauseUpgrade:       "upgraded",
		v1alpha1.CauseConfiguration: "configured anew",
		v1alpha1.CauseReboot:        "restarted",
		v1alpha1.CauseKeyChange:     "given another SSH key",
		v1alpha1.CauseRepair:        "repaired",
		v1alpha1.CauseRemoval:       "removed",
	}[d.Cause]
	if what == "" {
		what = "changed"
	}
	return fmt.Sprintf("%s is being %s since %s", name, what, moment(d.Since.Time))
}

func (n PooledNode) describe() string {
	if n.Pool == "" {
		return "Node " + n.name()
	}
	return fmt.Sprintf("Node %s (%s)", n.name(), n.Pool)
}

func (n PooledNode) name() string {
	if n.Node == "" {
		return n.Instance
	}
	return n.Node
}

// failureText is why a change failed, as a sentence.
func failureText(f v1alpha1.FailedChange) string {
	text := strings.TrimSpace(f.Message)
	if text == "" {
		text = f.Reason
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// moment writes a time for administrators.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
