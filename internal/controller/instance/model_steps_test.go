package instance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// modelStep is a step of a history.
type modelStep struct {
	name string
	// weight is the relative frequency of the step.
	weight int
	do     func(*model, *rand.Rand)
}

// modelStepAt returns a random step.
func modelStepAt(steps []modelStep, random *rand.Rand) modelStep {
	sum := 0
	for _, step := range steps {
		sum += step.weight
	}
	n := random.IntN(sum)
	i := 0
	for ; n >= steps[i].weight; i++ {
		n -= steps[i].weight
	}
	return steps[i]
}

func (m *model) editInstance(change func(*v1alpha1.WindowsInstance)) {
	m.edited = m.clock.Now()
	instance := m.storedInstance()
	if instance == nil {
		return
	}
	before := instance.DeepCopy()
	change(instance)
	if !apiequality.Semantic.DeepEqual(before.Spec, instance.Spec) {
		instance.Generation++
	}
	if err := m.api.Update(m.t.Context(), instance); err != nil {
		m.t.Fatal(err)
	}
}

// list lists the host, possibly again.
func (m *model) list() {
	if m.storedInstance() != nil {
		m.editInstance(func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateNode })
		return
	}
	instance := listedInstance()
	m.edited = m.clock.Now()
	m.createdObjects++
	instance.UID, instance.CreationTimestamp = types.UID(fmt.Sprintf("instance-%d", m.createdObjects)), metav1.NewTime(m.clock.Now())
	if err := m.api.Create(m.t.Context(), instance); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) refuseWrites(n int, err error) { m.refuse, m.with = n, err }

var errModelConflict = apierrors.NewConflict(schema.GroupResource{Resource: "windowsinstances"}, machine, errors.New("it has changed"))

func modelSteps() []modelStep {
	return []modelStep{
		{"a second passes", 4, func(m *model, _ *rand.Rand) { m.advanceTime(time.Second) }},
		{"some seconds pass", 5, func(m *model, r *rand.Rand) { m.advanceTime(time.Duration(1+r.IntN(30)) * time.Second) }},
		{"some minutes pass", 5, func(m *model, r *rand.Rand) { m.advanceTime(time.Duration(1+r.IntN(10)) * time.Minute) }},
		{"one reconcile", 3, func(m *model, _ *rand.Rand) { m.run() }},
		{"nothing more is sent", 1, func(m *model, _ *rand.Rand) { m.latch.holdData() }},
		{"all is sent", 3, func(m *model, _ *rand.Rand) { m.latch.releaseData() }},
		{"the operator restarts", 1, func(m *model, _ *rand.Rand) { m.replaceOperator() }},
		{"writes conflict", 1, func(m *model, r *rand.Rand) { m.refuseWrites(1+r.IntN(5), errModelConflict) }},
		{"writes fail", 1, func(m *model, r *rand.Rand) {
			m.refuseWrites(1+r.IntN(3), apierrors.NewInternalError(errors.New("no leader")))
		}},
		{"answers are lost", 1, func(m *model, r *rand.Rand) { m.lost = 1 + r.IntN(2) }},
		{"the cache is held", 1, func(m *model, _ *rand.Rand) { m.cached = m.storedInstance() }},
		{"the cache is current", 2, func(m *model, _ *rand.Rand) { m.cached = nil }},
		{"the setting changes", 6, func(m *model, r *rand.Rand) {
			m.facts.Kubelet.ClusterDomain = fmt.Sprintf("domain-%d.local", r.IntN(3))
			m.queued.Store(true)
		}},
		{"pause", 1, func(m *model, _ *rand.Rand) {
			m.editInstance(func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
		}},
		{"resume", 3, func(m *model, _ *rand.Rand) {
			m.editInstance(func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = false })
		}},
		{"remove", 1, func(m *model, _ *rand.Rand) { m.editInstance(setRemoved) }},
		{"list", 4, func(m *model, _ *rand.Rand) { m.list() }},
		{"delete the instance", 1, func(m *model, _ *rand.Rand) {
			if instance := m.storedInstance(); instance != nil {
				m.edited = m.clock.Now()
				if err := m.api.Delete(m.t.Context(), instance); err != nil {
					m.t.Fatal(err)
				}
			}
		}},
		{"delete the Node", 1, func(m *model, _ *rand.Rand) {
			if node := m.trialNode(); node != nil {
				m.evictAll()
				if err := m.api.Delete(m.t.Context(), node); err != nil {
					m.t.Fatal(err)
				}
			}
		}},
		{"the port is closed", 1, func(m *model, _ *rand.Rand) { m.off.Store(true) }},
		{"the port is open", 2, func(m *model, _ *rand.Rand) { m.off.Store(false) }},
		{"the host loses power", 1, func(m *model, _ *rand.Rand) { m.losesPower() }},
		{"the kubelet crashes", 1, func(m *model, _ *rand.Rand) {
			_ = m.host.machine.CrashService(nodespec.ServiceKubelet, 1) // the kubelet may not run
		}},
		{"the gate is shut", 1, func(m *model, _ *rand.Rand) { m.gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached) }},
		{"the gate is open", 2, func(m *model, _ *rand.Rand) { m.gate.closed = false }},
		{"the Node is to restart", 1, func(m *model, _ *rand.Rand) {
			if m.trialNode() != nil {
				m.changeNode(func(node *corev1.Node) {
					metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationRebootRequired, "patches")
				})
			}
		}},
	}
}

func (m *model) losesPower() {
	m.host.machine.PowerOff()
	m.forgetCommands()
	if err := m.host.machine.Boot(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// resolveFaults resolves all faults.
func (m *model) resolveFaults() {
	m.latch.releaseData()
	m.off.Store(false)
	m.refuse, m.lost, m.cached, m.gate.closed = 0, 0, nil, false
}
