package policy

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// NodePool is the nodes that one decision about disruptions is made of, with the pools that they are in and what is being disturbed.
type NodePool struct {
	// Nodes are all that are or were in service. An instance with an entry in Disruptions is among them as long as it exists, also when its
	// Node is not there at the moment (it is not Ready then): an entry in place whose instance is not here has ended.
	Nodes []PooledNode
	// MachineSets are all that have Windows Machines or entries in Disruptions. An entry whose MachineSet is not here has ended.
	MachineSets []PooledMachines
	Disruptions []v1alpha1.Disruption
}

// PooledNode is a Windows node that is or was in service: each instance that has a Node which takes or has taken pods.
type PooledNode struct {
	Instance string
	UID      types.UID
	Node     string
	// Pool is as in WindowsDisruptionPolicy.spec.pools.
	Pool string
	// Version is the operator's that has proven it.
	Version string
	// Ready is true while the node works and takes pods as far as the operator is concerned, and Since when that last changed.
	Ready bool
	Since time.Time
	// Gone is true for a host that is known to be gone: its Machine has failed or is being deleted by others, or an administrator has said so.
	Gone bool
	// Failure is its last change, if that has failed.
	Failure *v1alpha1.FailedChange
}

// PooledMachines are the Machines of a MachineSet.
type PooledMachines struct {
	// Name is the MachineSet's; its pool is MachineSet/<name>.
	Name string
	// Replicas is how many there are to be, and Running how many run and have a Ready node in service.
	Replicas, Running int
	// Missing is how many there are too few of, or are being made or deleted, also by the operator. Machines that have failed are not among
	// them.
	Missing int
	// Failed is how many Machines have failed.
	Failed int
	// Staying are the names of the Machines that are there and not being deleted, failed ones too. A Machine with an entry that is not among
	// them is one of the missing, and not counted twice.
	Staying []string
	// Leaving are the Machines that are being deleted and are still there.
	Leaving []LeavingMachine
}

// LeavingMachine is a Machine that is being deleted. Why says what the Machine API waits for before it lets the Machine go, as the Machine has
// it: pods that a PodDisruptionBudget keeps, above all. It is empty where the Machine says nothing.
type LeavingMachine struct {
	Name, Why string
}

// DisruptionRequest asks for one node to be disturbed.
type DisruptionRequest struct {
	Instance string
	UID      types.UID
	Cause    v1alpha1.DisruptionCause
	// Version is the version of the operator that the node is brought to.
	Version string
	// Replaces is true when its Machine is to be deleted.
	Replaces bool
}

// DisruptionDecision says whether a node may be disturbed now.
type DisruptionDecision struct {
	Decision
	// After is when to ask again at the latest, where time alone may change the answer; zero: when something else changes.
	After time.Duration
}

// ForAll reports whether a refusal holds for every other node too.
func (d DisruptionDecision) ForAll() bool {
	return d.Reason == v1alpha1.ReasonDisruptionPolicyInvalid || d.Reason == v1alpha1.ReasonOutsideMaintenanceWindow
}

// StandsStill reports whether a refusal ends with time, or with what an administrator does to the policy or to a node that has failed, and not
// with what becomes of other nodes.
func (d DisruptionDecision) StandsStill() bool {
	switch d.Reason {
	case v1alpha1.ReasonDisruptionsPaused, v1alpha1.ReasonDisruptionPolicyInvalid, v1alpha1.ReasonOutsideMaintenanceWindow, v1alpha1.ReasonCanaryFailed, v1alpha1.ReasonStoppedOnFailure:
		return true
	}
	return false
}

// WaitsForPlace reports whether a refusal ends when another node comes back.
func (d DisruptionDecision) WaitsForPlace() bool {
	return d.Reason == v1alpha1.ReasonWaitingForTurn || d.Reason == v1alpha1.ReasonLastOfMachineSet
}

// MayDisrupt decides whether one node may be disturbed now. A node with an entry of its own that still counts goes on, whatever the policy
// says by now, as far as GoesOn. Else it is decided on anew, as is one whose entry has failed; that entry then begins anew too, with another
// Since.
func MayDisrupt(pool NodePool, request DisruptionRequest, settings DisruptionSettings, now time.Time) DisruptionDecision {
	s := newDisruptionScene(pool, request, settings, now)
	if s.own != nil && GoesOn(s.own.Disruption, request) {
		return DisruptionDecision{Decision: Decision{Allowed: true, Message: s.own.describe() + " already."}}
	}
	// What waits for an administrator is told before what waits for a time, and that before what waits for other nodes.
	decision := decide(s, "It is this node's turn.", []check[*disruptionScene]{
		{"Instance", v1alpha1.ReasonWaitingForTurn, sameInstance},
		{"Valid", v1alpha1.ReasonDisruptionPolicyInvalid, unlessExempt(policyValid)},
		{"Paused", v1alpha1.ReasonDisruptionsPaused, unlessExempt(notPaused)},
		{"StopOnFailure", v1alpha1.ReasonStoppedOnFailure, unlessExempt(noneFailed)},
		{"CanaryFailed", v1alpha1.ReasonCanaryFailed, unlessExempt(canaryNotFailed)},
		{"MaintenanceWindow", v1alpha1.ReasonOutsideMaintenanceWindow, unlessExempt(windowOpen)},
		{"CanarySoaking", v1alpha1.ReasonCanarySoaking, unlessExempt(canarySoaked)},
		{"LastOfMachineSet", v1alpha1.ReasonLastOfMachineSet, unlessRemoved(anotherRuns)},
		{"MaxUnavailable", v1alpha1.ReasonWaitingForTurn, withinLimit},
		{"PoolMaxUnavailable", v1alpha1.ReasonWaitingForTurn, withinPoolLimit},
	})
	if decision.Allowed {
		return DisruptionDecision{Decision: decision}
	}
	return DisruptionDecision{Decision: decision, After: s.after()}
}

// disruptionScene is a request with all that is decided on.
type disruptionScene struct {
	DisruptionRequest
	pool     NodePool
	settings DisruptionSettings
	now      time.Time
	// candidate is the node in question. One that is not among the pool's has never been in service: only the limit of all nodes is for it.
	candidate PooledNode
	// own is the candidate's entry if it counts, and entries are all others that count.
	own     *standingDisruption
	entries []standingDisruption
	// notes are the entries of others that have failed and not ended.
	notes []standingDisruption
	// again is when time alone may change the answer, zero when it may not.
	again time.Time
}

func newDisruptionScene(pool NodePool, request DisruptionRequest, settings DisruptionSettings, now time.Time) *disruptionScene {
	s := &disruptionScene{DisruptionRequest: request, pool: pool, settings: settings, now: now}
	s.candidate, _ = first(pool.Nodes, func(n PooledNode) bool { return n.Instance == request.Instance })
	for _, d := range pool.Disruptions {
		ended, failed, _ := Ended(d, pool, settings, now)
		standing := standingDisruption{Disruption: d, until: d.Since.Add(settings.FailureDeadline)}
		switch {
		case d.Instance == request.Instance:
			if !ended && !failed && d.InstanceUID == request.UID {
				s.own = &standing
			}
		case failed && !ended:
			s.notes = append(s.notes, standing)
		case !ended:
			s.entries = append(s.entries, standing)
		}
	}
	return s
}

// askAgain remembers the earliest of the times at which the answer may change.
func (s *disruptionScene) askAgain(at time.Time) {
	if at.After(s.now) && (s.again.IsZero() || at.Before(s.again)) {
		s.again = at
	}
}

func (s *disruptionScene) after() time.Duration {
	if s.again.IsZero() {
		return 0
	}
	return s.again.Sub(s.now)
}

// GoesOn reports whether a request is for what an entry of its instance, which counts, has begun. What has begun as a repair or a removal goes on
// as nothing else, and nothing goes on as an upgrade to a version that it did not begin for: that would get round the pauses, windows and
// canaries that those are free of.
func GoesOn(own v1alpha1.Disruption, request DisruptionRequest) bool {
	if exempt(request.Cause) || own.Cause == request.Cause && own.Version == request.Version {
		return true
	}
	return !exempt(own.Cause) && request.Cause != v1alpha1.CauseUpgrade
}

// busy reports whether an instance has an entry that counts.
func (s *disruptionScene) busy(instance string) bool {
	return slices.ContainsFunc(s.entries, func(d standingDisruption) bool { return d.Instance == instance })
}

// unlessExempt is for rules that repairs and removals need not keep: they wait for nothing but other nodes that are being disturbed.
func unlessExempt(broken func(*disruptionScene) string) func(*disruptionScene) string {
	return func(s *disruptionScene) string {
		if s.exempt() {
			return ""
		}
		return broken(s)
	}
}

func (s *disruptionScene) exempt() bool { return exempt(s.Cause) }

func exempt(cause v1alpha1.DisruptionCause) bool {
	return cause == v1alpha1.CauseRepair || cause == v1alpha1.CauseRemoval
}

func unlessRemoved(broken func(*disruptionScene) string) func(*disruptionScene) string {
	return func(s *disruptionScene) string {
		if s.Cause == v1alpha1.CauseRemoval {
			return ""
		}
		return broken(s)
	}
}

func sameInstance(s *disruptionScene) string {
	if s.candidate.Instance != "" && s.candidate.UID != s.UID {
		return fmt.Sprintf("WindowsInstance %s was made anew in the meantime. The operator asks again for the new one.", s.Instance)
	}
	return ""
}

func policyValid(s *disruptionScene) string {
	if s.settings.Invalid == "" {
		return ""
	}
	return fmt.Sprintf("WindowsDisruptionPolicy %s cannot be followed, so no node is disturbed but to repair or remove it. %s. Correct it.",
		v1alpha1.DisruptionPolicyName, s.settings.Invalid)
}

func notPaused(s *disruptionScene) string {
	const remedy = "It goes on when an administrator sets that to false."
	switch {
	case s.settings.Paused:
		return fmt.Sprintf("WindowsDisruptionPolicy %s is paused (spec.paused). %s", v1alpha1.DisruptionPolicyName, remedy)
	case s.settings.Pools[s.candidate.Pool].Paused:
		return fmt.Sprintf("Pool %s is paused (paused in spec.pools of WindowsDisruptionPolicy %s). %s", s.candidate.Pool, v1alpha1.DisruptionPolicyName, remedy)
	}
	return ""
}

func windowOpen(s *disruptionScene) string {
	open, next, window := s.settings.nextWindow(s.now)
	switch {
	case open:
		return ""
	case next.IsZero():
		return fmt.Sprintf("No maintenance window of WindowsDisruptionPolicy %s opens within years.", v1alpha1.DisruptionPolicyName)
	}
	s.askAgain(next)
	return fmt.Sprintf("No maintenance window is open. The next one opens at %s (%s).", moment(next), window.Text)
}

// noneFailed is the rule of stopOnFailure.
func noneFailed(s *disruptionScene) string {
	if !s.settings.StopOnFailure {
		return ""
	}
	failed := s.failedNote(func(d standingDisruption) bool { return d.Version == s.Version && d.Cause != v1alpha1.CauseRemoval })
	for _, n := range s.pool.Nodes {
		if failed != "" {
			break
		}
		if n.Instance == s.Instance || n.Gone {
			continue
		}
		switch {
		case n.Failure != nil && n.Failure.Version == s.Version && !n.Failure.DrainTimedOut:
			failed = n.describe() + " has failed: " + failureText(*n.Failure)
		case n.Pool == s.candidate.Pool && n.overdue(s.settings, s.now):
			failed = fmt.Sprintf("%s is not Ready since %s.", n.describe(), moment(n.Since))
		}
	}
	if failed == "" {
		return ""
	}
	return fmt.Sprintf("%s No further node is disturbed, as stopOnFailure of WindowsDisruptionPolicy %s wants it. Mend that node, or have it tried again with the annotation %s on its WindowsInstance.",
		failed, v1alpha1.DisruptionPolicyName, v1alpha1.AnnotationRetry)
}

// failedNote describes the first entry that has failed and is of a kind.
func (s *disruptionScene) failedNote(of func(standingDisruption) bool) string {
	d, found := first(s.notes, of)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s, and has not come back by %s.", d.describe(), moment(d.until))
}
