package hosttest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotRun is returned if the machine lacks a requirement of a behavior, such as a feature. It is not a failure.
var ErrNotRun = errors.New("not run on this machine")

// Environment is the environment of the suite.
type Environment string

// Environments.
const (
	Fake    Environment = "fake"    // the machine in memory
	Wine    Environment = "wine"    // the lab's test hosts
	Windows Environment = "windows" // a real Windows Server
)

// Status is the result of a behavior in an environment.
type Status string

// Statuses. The first three apply to behaviors that hold.
const (
	Simulated Status = "simulated" // holds on the machine in memory
	Verified  Status = "verified"  // holds with the environment's own code
	Emulated  Status = "emulated"  // holds on the lab's replacement of a part of Windows
	FakeOnly  Status = "fake only" // missing in the environment
	Differs   Status = "differs"   // supported, but different from Windows
	NotRun    Status = "not run"
	Failed    Status = "failed"
)

// Mark declares the status of one behavior, or of all behaviors of an operation, in an environment.
type Mark struct {
	Of     string // a Behavior's ID, or an operation: "Files.Write"
	Status Status // Emulated, FakeOnly or Differs
	Reason string // the replacement, the missing part, or the difference
}

func (m Mark) isForBehavior(b Behavior) bool { return m.Of == b.Operation || m.Of == b.ID() }

// findMark returns the mark of a behavior. A mark of the behavior precedes a mark of the operation.
func findMark(b Behavior, marks []Mark) (found Mark, marked bool) {
	for _, m := range marks {
		if m.isForBehavior(b) && len(m.Of) > len(found.Of) {
			found, marked = m, true
		}
	}
	return found, marked
}

// CheckMarks reports invalid marks: without a behavior, with a wrong status, without a reason, duplicate.
func CheckMarks(marks []Mark) error {
	all := append(Behaviors(), RebootBehaviors()...)
	var wrong []error
	seen := map[string]bool{}
	for _, m := range marks {
		used := false
		for _, b := range all {
			used = used || m.isForBehavior(b)
		}
		switch {
		case !used:
			wrong = append(wrong, fmt.Errorf("the mark of %q matches no behavior: remove the mark or correct its name", m.Of))
		case seen[m.Of]:
			wrong = append(wrong, fmt.Errorf("%q has two marks", m.Of))
		case m.Status != Emulated && m.Status != FakeOnly && m.Status != Differs:
			wrong = append(wrong, fmt.Errorf("the mark of %q: status %q cannot be declared", m.Of, m.Status))
		case strings.TrimSpace(m.Reason) == "" || strings.ContainsAny(m.Reason, "\n|"):
			wrong = append(wrong, fmt.Errorf("the mark of %q needs a reason, in one line without |", m.Of))
		}
		seen[m.Of] = true
	}
	return errors.Join(wrong...)
}
