package hosttest

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	// behaviorTimeout is the timeout of a behavior that must hold.
	behaviorTimeout = 3 * time.Minute
	// markedBehaviorTimeout is the timeout of a behavior declared not to hold; a hanging call counts as not holding.
	markedBehaviorTimeout = 10 * time.Second
	// callGracePeriod is the time that a call may continue after its context is done.
	callGracePeriod = 10 * time.Second
)

// Run runs the suite, with each behavior as a separate test, and returns the results.
func Run(t *testing.T, subject Subject) Report {
	t.Helper()
	report := subject.run(t, Behaviors(), true)
	for _, b := range RebootBehaviors() {
		report.addResult(b, NotRun, "requires a reboot, which must be requested explicitly")
	}
	return report
}

// run runs some behaviors, each on a clean machine if fresh is set.
func (s Subject) run(t *testing.T, behaviors []Behavior, fresh bool) Report {
	t.Helper()
	if err := CheckMarks(s.Marks); err != nil {
		t.Error(err)
	}
	report := Report{Environment: s.Environment}
	for _, b := range behaviors {
		mark, marked := findMark(b, s.Marks)
		standing, reason := Failed, ""
		t.Run(strings.ReplaceAll(b.Operation, ".", "/")+"/"+b.Sentence, func(t *testing.T) {
			machine := s.Open(t)
			limit := behaviorTimeout
			if marked && mark.Status != Emulated {
				limit = markedBehaviorTimeout
			}
			outcome := runBehavior(t.Context(), b, machine, limit, fresh)
			if report.System == "" {
				report.System = describeMachine(t.Context(), machine.Host)
			}
			var words string
			standing, reason, words = judgeOutcome(s.Environment, outcome, mark)
			switch {
			case standing == Failed:
				t.Error(words)
			case words != "":
				t.Skip(words)
			}
		})
		report.addResult(b, standing, reason)
	}
	return report
}

// describeMachine returns a short description of the machine.
func describeMachine(ctx context.Context, h host.Host) string {
	info, err := h.System.Info(ctx)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s, %s.%d", info.Product, info.Version, info.Revision)
}

type outcome struct {
	failures []string // empty if the behavior holds
	absent   string
}

func (o outcome) hasPassed() bool { return len(o.failures) == 0 && o.absent == "" }

// judgeOutcome returns the status of an outcome with the given mark (the zero Mark means none). words explain to the
// user of the suite why the behavior failed or was not shown.
func judgeOutcome(where Environment, o outcome, m Mark) (standing Status, reason, words string) {
	missing := m.Status == FakeOnly || m.Status == Differs
	switch {
	case o.absent != "" && !missing:
		return NotRun, o.absent, "NOT RUN ON THIS MACHINE: " + o.absent
	case missing && o.hasPassed():
		return Failed, "declared as " + string(m.Status) + ", but holds",
			fmt.Sprintf("the behavior holds here, but is declared as %q (%s): remove the mark", m.Status, m.Reason)
	case missing:
		shown := append([]string{fmt.Sprintf("NOT SHOWN HERE (%s): %s; result:", m.Status, m.Reason)},
			o.failures...)
		return m.Status, m.Reason, strings.Join(append(shown, o.absent), "\n")
	case len(o.failures) > 0:
		first, _, _ := strings.Cut(o.failures[0], "\n")
		return Failed, strings.ReplaceAll(first, "|", "/"), strings.Join(o.failures, "\n")
	case m.Status == Emulated:
		return Emulated, m.Reason, ""
	case where == Fake:
		return Simulated, "", ""
	}
	return Verified, "", ""
}

// runBehavior runs one behavior on a clean machine and cleans up afterwards. Without fresh, it continues on the machine
// of an earlier half.
func runBehavior(ctx context.Context, b Behavior, machine Machine, limit time.Duration, fresh bool) outcome {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !fresh {
		s := &suite{Host: machine.Host, machine: machine, ctx: ctx}
		s.runProtected(func() { b.check(s) })
		return s.collectOutcome()
	}
	called := &calls{}
	s := &suite{Host: called.wrapHost(machine.Host), machine: machine, ctx: ctx}
	if err := prepareMachine(ctx, machine.Host); err != nil {
		return outcome{failures: []string{err.Error()}}
	}
	s.runProtected(func() { b.check(s) })
	called.stop()
	if !called.hasCall(b.Operation) && s.collectOutcome().hasPassed() {
		s.Errorf("the behavior did not call %s", b.Operation)
	}
	s.Host = machine.Host
	// The test's own context may already be done.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), behaviorTimeout)
	defer cancel()
	if err := s.cleanUp(ctx); err != nil {
		s.Errorf("clean up after: %v", err)
	}
	return s.collectOutcome()
}

// prepareMachine establishes the initial state of the machine for a behavior.
func prepareMachine(ctx context.Context, h host.Host) error {
	if err := (&suite{Host: h}).cleanUp(ctx); err != nil {
		return fmt.Errorf("clean up before: %w", err)
	}
	return h.Tree.MakeDirectory(ctx, Scratch, host.AccessInherited)
}

// runProtected runs a part of a behavior, which may end by Fatalf, panic, or hang in a call that ignores its context.
func (s *suite) runProtected(part func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if problem := recover(); problem != nil {
				s.Errorf("panic: %v\n%s", problem, debug.Stack())
			}
		}()
		part()
	}()
	select {
	case <-done:
		return
	case <-s.ctx.Done():
	}
	timer := time.NewTimer(callGracePeriod)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.Errorf("the behavior hangs: still running %s after the end of its context", callGracePeriod)
	}
}

func (s *suite) collectOutcome() outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return outcome{failures: slices.Clone(s.failures), absent: s.absent}
}
