package test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var errStruck = errors.New("killed by the test")

// reaper kills operators. A host that reaches an unused boundary waits there until no more hosts arrive. Then the
// operator is killed at all these boundaries at once and replaced by another operator.
type reaper struct {
	*testing.T
	env        *testenv.Environment
	agentsOnly bool                  // agent commands are killed, not the operator
	gate       bool                  // the status write of the disruption policy is a boundary, too
	release    *testenv.Release      // release of the next operators; nil: the environment's own
	watches    map[string]*hostWatch // by the IP address of the host

	mu        sync.Mutex
	table     boundaries
	recording bool // boundaries are entered into the table, without kills
	current   *operatorRun
	waiting   map[string]bool // hosts and requests that wait at a boundary
	arrived   chan struct{}
	lives     int
}

// boundaries maps the name of each boundary to true if an operator or an agent was killed there.
type boundaries map[string]bool

// unusedBoundaries returns the unused boundaries. No operator may run meanwhile.
func (b boundaries) unusedBoundaries() []string {
	var labels []string
	for label, used := range b {
		if !used {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}

func newReaper(t *testing.T) *reaper {
	return &reaper{T: t, waiting: map[string]bool{}, arrived: make(chan struct{}, 1), watches: map[string]*hostWatch{}}
}

// attachHost makes the agent of a host wait at boundaries. If agent commands end with their session, the kill hits
// exactly at the boundary. Otherwise the agent continues alone.
func (k *reaper) attachHost(r *testenv.Environment, h *testenv.Host) {
	k.env = r
	k.mu.Lock()
	k.watches[h.Options.Address] = &hostWatch{host: h}
	k.mu.Unlock()
	if hasSurvivingAgent(h) {
		h.Inject(winhost.VerbSurvivesSession, winhost.Parameters{})
	}
	h.Machine().OnOperation(func(o fake.Operation) error {
		label := agentBoundary(h.Machine(), o)
		switch {
		case label == "":
			return nil
		case k.agentsOnly:
			return k.killAgent(o, h.Options.Name, label)
		case !k.waitAtBoundary(nil, h.Options.Name, label) || hasSurvivingAgent(h):
			return nil
		}
		ctx, cancel := context.WithTimeout(k.Context(), waitTimeout)
		defer cancel()
		if err := h.Machine().WaitFor(ctx, func(*fake.Machine) bool { return !o.Process.Alive() }); err != nil {
			k.Errorf("%s: the verb did not die with its session: %v", label, err)
		}
		return errStruck
	})
}

// killAgent kills an agent command before an operation, if no command was killed at this boundary yet.
func (k *reaper) killAgent(o fake.Operation, component, label string) error {
	k.mu.Lock()
	used, known := k.table[label]
	if k.recording && !known {
		k.table[label] = false
	}
	kill := !k.recording && known && !used
	if kill {
		k.table[label] = true
		k.Logf("%s at %s", component, label)
	}
	k.mu.Unlock()
	if !kill {
		return nil
	}
	o.Process.Kill()
	return errStruck
}

// hasSurvivingAgent reports whether agent commands of the host survive the end of their session, as on some hosts.
func hasSurvivingAgent(h *testenv.Host) bool {
	return h.Options.Name == "instance-4" || h.Options.Name == "instance-7"
}

// waitAtBoundary waits at the first unused boundary until the operator is killed. If all boundaries are used, it
// returns false at once. A nil life means the current life.
func (k *reaper) waitAtBoundary(l *operatorRun, component string, labels ...string) bool {
	k.mu.Lock()
	if l == nil {
		l = k.current
	}
	fresh := false
	for _, label := range labels {
		used, known := k.table[label]
		if k.recording && !known {
			k.table[label] = false
		}
		if !k.recording && known && !used && l != nil && !l.hasEnded() {
			k.table[label], fresh = true, true
			k.Logf("life %d: %s at %s", k.lives, component, label)
		}
	}
	if !fresh {
		k.mu.Unlock()
		return false
	}
	k.waiting[component] = true
	k.mu.Unlock()
	select {
	case k.arrived <- struct{}{}:
	default:
	}
	<-l.killed
	return true
}

// quietPeriod is the time without a new arrival at a boundary before the operator is killed, if not all busy hosts wait
// at a boundary.
const quietPeriod = 2 * time.Second

// run kills operators whenever a host waits at a boundary, until done is closed.
func (k *reaper) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-k.arrived:
		}
		timer := time.NewTimer(quietPeriod)
		for waiting := true; waiting && !k.isEveryHostWaiting(); {
			select {
			case <-k.arrived:
				timer.Reset(quietPeriod)
			case <-timer.C:
				waiting = false
			}
		}
		timer.Stop()
		k.killOperator()
		k.start()
	}
}

// isEveryHostWaiting reports whether all busy hosts wait at a boundary.
func (k *reaper) isEveryHostWaiting() bool {
	var instances v1alpha1.WindowsInstanceList
	if err := k.env.Client.List(k.Context(), &instances); err != nil {
		return false
	}
	working := 0
	for i := range instances.Items {
		if !testenv.IsReady(&instances.Items[i]) || instances.Items[i].Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			working++
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return working > 0 && len(k.waiting) >= working
}

// killOperator kills the operator.
func (k *reaper) killOperator() {
	k.mu.Lock()
	l := k.current
	k.waiting = map[string]bool{}
	close(l.killed)
	k.mu.Unlock()
	go l.operator.Kill() // the rest of the operator has no effect and is not awaited
}

// releaseHosts releases all waiting hosts.
func (k *reaper) releaseHosts() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil && !k.current.hasEnded() {
		close(k.current.killed)
	}
}

// hasWaiting reports whether a host or a request waits at a boundary and must not exceed a limit there.
func (k *reaper) hasWaiting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.waiting) > 0
}

// recordBoundaries returns the boundaries that an undisturbed operator reaches during the work.
func (k *reaper) recordBoundaries(work func()) boundaries {
	k.Helper()
	table := boundaries{}
	k.setBoundaries(table, true)
	k.start()
	work()
	if err := k.current.operator.Stop(); err != nil {
		k.Fatal(err)
	}
	k.setBoundaries(nil, false)
	return table
}

// setBoundaries sets the boundaries to kill at or to learn.
func (k *reaper) setBoundaries(table boundaries, recording bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table, k.recording = table, recording
}

// runUntil kills operators at boundaries until the work is done.
func (k *reaper) runUntil(table boundaries, work func(context.Context) error) {
	k.Helper()
	k.setBoundaries(table, false)
	ctx, cancel := context.WithTimeout(k.Context(), killTimeout)
	defer cancel()
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = work(ctx)
	}()
	start := time.Now()
	k.run(done)
	k.Logf("after %s", time.Since(start).Round(time.Second))
	k.setBoundaries(nil, false)
	if k.hasWaiting() { // by a host that had finished before the kill
		k.killOperator()
		k.start()
	}
	if err != nil {
		k.Fatal(err)
	}
}

// checkVisited checks that the table has at least atLeast boundaries and that each was used for a kill.
func (k *reaper) checkVisited(what string, table boundaries, atLeast int) {
	k.Helper()
	if len(table) < atLeast {
		k.Errorf("only %d boundaries of the %s are known, want %d", len(table), what, atLeast)
	}
	for _, label := range table.unusedBoundaries() {
		k.Errorf("nobody was killed at: %s", label)
	}
	k.Logf("%s: %d boundaries; %d operators so far", what, len(table), k.lives)
}
