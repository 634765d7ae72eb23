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
// server and the operator itself. The instance is reconciled like by the operator's queue: after an accepted
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
	awake atomic.Bool
	due   time.Time // the earliest delayed request; zero for none
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

	made   int       // the number of created objects, for their UIDs
	edited time.Time // the last change by an administrator

	mu      sync.Mutex
	verbs   map[*fake.Process]string // running commands that change the host, started by the current operator since the last boot
	broken  []string                 // violated rules
	history []string
}

// restart stops the operator, and starts another one without any state.
func (m *model) restart() {
	if m.end != nil {
		m.end()
	}
	m.end, _ = m.leads(m.clock)
	m.Jobs.OnEnd(func(types.NamespacedName) { m.awake.Store(true) })
	m.due = time.Time{}
	m.awake.Store(true)
	m.forgetVerbs()
}

// forgetVerbs must be called when commands unknown to the current operator may run. The agent serializes them.
func (m *model) forgetVerbs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verbs = map[*fake.Process]string{}
}

func (m *model) says(format string, values ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, m.clock.Since(noon).String()+" "+fmt.Sprintf(format, values...))
}

// stored returns the instance; nil for none.
func (m *model) stored() *v1alpha1.WindowsInstance {
	instance := &v1alpha1.WindowsInstance{}
	if m.api.Get(context.Background(), client.ObjectKeyFromObject(listed()), instance) != nil {
		return nil
	}
	return instance
}

// watch delivers the events of the API server since the last call.
func (m *model) watch() {
	if m.cached != nil { // the watch is blocked
		return
	}
	instance, node := m.stored(), m.trialNode()
	switch {
	case (instance == nil) != (m.seen == nil), (node == nil) != (m.seenNode == nil):
		m.awake.Store(true)
	default:
		if instance != nil && instanceChanged().Update(event.UpdateEvent{ObjectOld: m.seen, ObjectNew: instance}) ||
			node != nil && nodeChanged().Update(event.UpdateEvent{ObjectOld: m.seenNode, ObjectNew: node}) {
			m.awake.Store(true)
		}
	}
	m.seen, m.seenNode = instance, node
}

// run reconciles the instance if it is in the queue.
func (m *model) run() (ran bool) {
	m.lives()
	m.watch()
	now := m.clock.Now()
	delayed := !m.due.IsZero() && !m.due.After(now)
	if !m.awake.Swap(false) && !delayed {
		return false
	}
	if delayed {
		m.due = time.Time{}
	}
	begun, before := m.Jobs.Begun(), m.stored()
	result, err := m.Reconcile(m.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(listed())})
	after := result.RequeueAfter
	for _, told := range m.told() {
		m.says("    event %s", told)
	}
	if m.Jobs.Begun() > begun {
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

// passes advances the clock.
func (m *model) passes(d time.Duration) {
	for until := m.clock.Now().Add(d); ; {
		m.run()
		m.settles()
		now := m.clock.Now()
		if !now.Before(until) {
			return
		}
		step := until.Sub(now)
		if !m.due.IsZero() {
			step = min(step, max(m.due.Sub(now), minimalWait))
		}
		m.clock.Step(step)
	}
}

// settles waits until jobs and their follow-up reconciles have ended. Waits for the clock continue.
func (m *model) settles() {
	for spins := 0; spins < 50; {
		switch {
		case m.run():
			spins = 0
		case m.Jobs.Running() == 0 || !m.latch.isOpen():
			if !m.awake.Load() {
				return
			}
		default:
			spins++
			time.Sleep(time.Millisecond)
		}
	}
}

// comesTo runs the operator until a condition holds, driven only by its own requests, jobs and watches.
func (m *model) comesTo(what string, holds func() bool) {
	m.t.Helper()
	for began := m.clock.Now(); ; {
		m.settles()
		m.watch()
		if m.fails(); holds() {
			return
		}
		if m.awake.Load() {
			continue
		}
		if m.stands() {
			m.t.Fatalf("%s does not come, and nothing drives the instance: %s\n%s", what, m.describe(), strings.Join(m.history, "\n"))
		}
		if m.clock.Since(began) > 6*time.Hour {
			m.t.Fatalf("%s does not come within six hours: %s\n%s", what, m.describe(), strings.Join(m.history, "\n"))
		}
		step := time.Second
		if m.Jobs.Running() == 0 {
			step = max(m.due.Sub(m.clock.Now()), minimalWait)
		}
		m.clock.Step(step)
	}
}

// stands reports whether no further reconcile is pending.
func (m *model) stands() bool {
	for range 3000 { // a job requests the next reconcile shortly after its end
		if !m.due.IsZero() || m.Jobs.Running() > 0 || m.awake.Load() {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

func (m *model) describe() string {
	instance := m.stored()
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

// asWanted reports whether the host is a node with the current settings.
func (m *model) asWanted() bool {
	instance, node := m.stored(), m.trialNode()
	return instance != nil && node != nil && instance.Status.Summary == v1alpha1.ReasonReady && instance.Status.SpecDigest == m.digest() &&
		!node.Spec.Unschedulable && !nodes.RebootWanted(node) && m.Jobs.Running() == 0 && len(m.gate.held) == 0
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
				m.comesTo("a Ready node", m.asWanted)
			}
			steps := modelSteps()
			for range modelLength {
				step := modelStepAt(steps, random)
				m.says("%s", step.name)
				step.do(m, random)
				m.run()
				m.checkDriven()
				m.fails()
			}
			m.says("all is mended")
			m.mend()
			m.edit(func(i *v1alpha1.WindowsInstance) {
				i.Spec.Paused = false
				metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationRetry, m.clock.Now().String())
			})
			m.list()
			m.comesTo("a Ready node", m.asWanted)
			verbs := len(m.host.execs())
			m.passes(time.Hour)
			if more := m.host.execs()[verbs:]; len(more) > 0 {
				t.Errorf("the agent of an idle node was told to %q", more)
			}
			m.says("it leaves")
			m.edit(remove)
			m.comesTo("a host that has left", func() bool { return m.stored() == nil && m.trialNode() == nil })
			m.fails()
		})
	}
}
