package instance

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// model is one listed host and its instance. The test applies random steps of administrators, the host, the API
// server and the operator itself. The instance is reconciled when the operator's queue would do so: after an accepted
// event, after a job, and after a requested delay.
type model struct {
	*trial
	host *agentHost
	gate *trialGate
	api  client.WithWatch // without faults
	end  func()           // ends the operator

	off   atomic.Bool // the host does not respond
	latch *latch      // for data sent to the host

	// The state of the queue.
	queued atomic.Bool
	due    time.Time // the earliest delayed request; zero for none
	// The last objects delivered by the watches.
	seen     *v1alpha1.WindowsInstance
	seenNode *corev1.Node
	kubelet  string // the start of the kubelet that reported last
	reported time.Time

	// The faults of the API server.
	cached *v1alpha1.WindowsInstance // the stale version in the cache; nil if up to date
	refuse int                       // the number of writes to refuse
	with   error
	lost   int // the number of writes with a lost response

	createdObjects int       // the number of created objects, for their UIDs
	edited         time.Time // the last change by an administrator

	mu      sync.Mutex
	verbs   map[*fake.Process]string // running commands that change the host, started by the current operator since the last boot
	broken  []string                 // violated rules
	history []string
}

// replaceOperator stops the operator, and starts another one without any state.
func (m *model) replaceOperator() {
	if m.end != nil {
		m.end()
	}
	m.end, _ = m.startLeading(m.clock)
	m.Jobs.OnEnd(func(types.NamespacedName) { m.queued.Store(true) })
	m.due = time.Time{}
	m.queued.Store(true)
	m.forgetCommands()
}

// forgetCommands must be called when commands unknown to the current operator may run. The agent serializes them.
func (m *model) forgetCommands() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verbs = map[*fake.Process]string{}
}

func (m *model) recordHistory(format string, values ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, m.clock.Since(noon).String()+" "+fmt.Sprintf(format, values...))
}

// storedInstance returns the instance; nil for none.
func (m *model) storedInstance() *v1alpha1.WindowsInstance {
	instance := &v1alpha1.WindowsInstance{}
	if m.api.Get(context.Background(), client.ObjectKeyFromObject(listedInstance()), instance) != nil {
		return nil
	}
	return instance
}

// deliverEvents delivers the events of the API server since the last call.
func (m *model) deliverEvents() {
	if m.cached != nil { // the watch is blocked
		return
	}
	instance, node := m.storedInstance(), m.trialNode()
	switch {
	case (instance == nil) != (m.seen == nil), (node == nil) != (m.seenNode == nil):
		m.queued.Store(true)
	default:
		if instance != nil && instanceChanged().Update(event.UpdateEvent{ObjectOld: m.seen, ObjectNew: instance}) ||
			node != nil && nodeChanged().Update(event.UpdateEvent{ObjectOld: m.seenNode, ObjectNew: node}) {
			m.queued.Store(true)
		}
	}
	m.seen, m.seenNode = instance, node
}

// run reconciles the instance if it is in the queue.
func (m *model) run() (ran bool) {
	m.simulateHost()
	m.deliverEvents()
	now := m.clock.Now()
	delayed := !m.due.IsZero() && !m.due.After(now)
	if !m.queued.Swap(false) && !delayed {
		return false
	}
	if delayed {
		m.due = time.Time{}
	}
	begun, before := m.Jobs.CountStarted(), m.storedInstance()
	result, err := m.Reconcile(m.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(listedInstance())})
	after := result.RequeueAfter
	for _, line := range m.popEvents() {
		m.recordHistory("    event %s", line)
	}
	if m.Jobs.CountStarted() > begun {
		m.checkCurrent(before)
	}
	if err != nil {
		after = time.Second
	}
	if after > 0 && (m.due.IsZero() || now.Add(after).Before(m.due)) {
		m.due = now.Add(after)
	}
	return true
}

// advanceTime advances the clock.
func (m *model) advanceTime(d time.Duration) {
	for until := m.clock.Now().Add(d); ; {
		m.run()
		m.runUntilIdle()
		now := m.clock.Now()
		if !now.Before(until) {
			return
		}
		step := until.Sub(now)
		if !m.due.IsZero() {
			step = min(step, max(m.due.Sub(now), minRequeueDelay))
		}
		m.clock.Step(step)
	}
}

// runUntilIdle waits until jobs and their follow-up reconciles have ended. Waits for the clock continue.
func (m *model) runUntilIdle() {
	for spins := 0; spins < 50; {
		switch {
		case m.run():
			spins = 0
		case m.Jobs.CountRunning() == 0 || !m.latch.isOpen():
			if !m.queued.Load() {
				return
			}
		default:
			spins++
			time.Sleep(time.Millisecond)
		}
	}
}

// driveUntil runs the operator until a condition holds, driven only by its own requests, jobs and watches.
func (m *model) driveUntil(what string, holds func() bool) {
	m.t.Helper()
	for start := m.clock.Now(); ; {
		m.runUntilIdle()
		m.deliverEvents()
		if m.checkViolations(); holds() {
			return
		}
		if m.queued.Load() {
			continue
		}
		if m.isStalled() {
			m.t.Fatalf("%s does not come, and nothing drives the instance: %s\n%s", what, m.describeInstance(), strings.Join(m.history, "\n"))
		}
		if m.clock.Since(start) > 6*time.Hour {
			m.t.Fatalf("%s does not come within six hours: %s\n%s", what, m.describeInstance(), strings.Join(m.history, "\n"))
		}
		step := time.Second
		if m.Jobs.CountRunning() == 0 {
			step = max(m.due.Sub(m.clock.Now()), minRequeueDelay)
		}
		m.clock.Step(step)
	}
}

// isStalled reports whether no further reconcile is pending.
func (m *model) isStalled() bool {
	for range 3000 { // a job requests the next reconcile shortly after its end
		if !m.due.IsZero() || m.Jobs.CountRunning() > 0 || m.queued.Load() {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

func (m *model) describeInstance() string {
	instance := m.storedInstance()
	if instance == nil {
		return "there is no instance"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", instance.Status.Summary, instance.Status.NextAction)
	for _, c := range instance.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// isAsDesired reports whether the host is a node with the current settings.
func (m *model) isAsDesired() bool {
	instance, node := m.storedInstance(), m.trialNode()
	return instance != nil && node != nil && instance.Status.Summary == v1alpha1.ReasonReady && instance.Status.SpecDigest == m.specDigest() &&
		!node.Spec.Unschedulable && !nodes.IsRebootRequested(node) && m.Jobs.CountRunning() == 0 && len(m.gate.held) == 0
}

// modelLength is the number of random steps of a history.
const modelLength = 40

var (
	modelSeeds = flag.Uint64("model.seeds", 10, "number of histories of the model test")
	modelFirst = flag.Uint64("model.first", 0, "first seed of the model test")
)

func TestWhateverHappensAnInstanceComesToItsDesiredState(t *testing.T) {
	for seed := *modelFirst; seed < *modelFirst+*modelSeeds; seed++ {
		if testing.Short() && seed >= *modelFirst+3 {
			break
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := newModel(t)
			random := rand.New(rand.NewPCG(seed, 0))
			if random.IntN(2) == 0 {
				m.driveUntil("a Ready node", m.isAsDesired)
			}
			steps := modelSteps()
			for range modelLength {
				step := modelStepAt(steps, random)
				m.recordHistory("%s", step.name)
				step.do(m, random)
				m.run()
				m.checkDriven()
				m.checkViolations()
			}
			m.recordHistory("all is mended")
			m.resolveFaults()
			m.editInstance(func(i *v1alpha1.WindowsInstance) {
				i.Spec.Paused = false
				metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationRetry, m.clock.Now().String())
			})
			m.list()
			m.driveUntil("a Ready node", m.isAsDesired)
			verbs := len(m.host.agentCommands())
			m.advanceTime(time.Hour)
			if more := m.host.agentCommands()[verbs:]; len(more) > 0 {
				t.Errorf("the agent of an idle node was told to %q", more)
			}
			m.recordHistory("it leaves")
			m.editInstance(setRemoved)
			m.driveUntil("a host that has left", func() bool { return m.storedInstance() == nil && m.trialNode() == nil })
			m.checkViolations()
		})
	}
}
