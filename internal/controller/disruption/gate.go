// Package disruption is the one gate that every disturbance of a Windows node passes, whatever its cause.
package disruption

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// Gate lets controllers disturb nodes. It reads the API server when it decides, and writes the decision into the status
// of the WindowsDisruptionPolicy before it returns it. So of two decisions at the same time one is made again.
type Gate interface {
	// Acquire asks for a node to be disturbed. A node that is being disturbed already for the same instance is allowed at
	// once, as far as disruptionpolicy.GoesOn, and this process has it from then on.
	Acquire(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error)
	// Release ends the disturbance of an instance's node, if this process has it. A disturbance from before this process
	// looked for the first time is its own. With nothing to release it writes nothing, and asks the API server nothing. Once
	// a Machine is being deleted, its replacement is not ended by this, but by there being another one that works.
	Release(ctx context.Context, instance string) error
	// Holds tells, from memory, whether the node of the instance is being disturbed in place, by whatever process.
	Holds(ctx context.Context, instance string) (bool, error)
	// Settings are those that are in force. What an administrator has written that cannot be followed has its default.
	Settings(ctx context.Context) (disruptionpolicy.Settings, error)
}

// refusalLife is how long a refusal answers for others that ask with nothing written in between: of a hundred nodes
// that wait for their turn, one has the whole cluster read. A node is never let through on what was read for another
// one.
const refusalLife = 5 * time.Second

// conflictBackoff is how a decision is made again whose write another has overtaken.
var conflictBackoff = wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.6,
	Jitter: 0.5, Cap: time.Second}

// decisionTimeout ends a decision whose requests the API server does not answer: other decisions wait for it.
const decisionTimeout = 30 * time.Second

// Options configure a gate.
type Options struct {
	// Client reads what is in memory, and writes.
	Client client.Client
	// Live reads the API server.
	Live client.Reader
	// Namespace is the operator's own.
	Namespace string
	// Version is the operator's.
	Version string
	// Operator tells this process from any other.
	Operator string
	// Configuration returns what all nodes are to have now: see nodespec.Configuration. Empty when it is not known; nil
	// where nobody knows it.
	Configuration func() string
	Events        events.EventRecorder
	Clock         clock.PassiveClock
}

// PolicyGate is a Gate that follows the WindowsDisruptionPolicy. It is safe for concurrent use, and any number of
// processes may have one.
type PolicyGate struct {
	Options
	memory memory
	// reviewed is the resource version that the last look at everything has read or written.
	reviewed atomic.Value

	// deciding holds a token while this process makes a decision: more than one would only overtake each other. It guards
	// the fields below.
	deciding chan struct{}
	// looked is true once this process has seen all nodes and adopted what former processes had begun, and has written
	// that.
	looked bool
	// lingering holds the disruptions of other processes whose nodes are in service, and when this process saw that first.
	lingering map[disruptionID]time.Time
	// refused is what the last refusal was made of.
	refused refusal
	// failed are the disruptions that are reported as failed.
	failed recorder.Once[disruptionID]
}

var _ Gate = (*PolicyGate)(nil)

// refusal is a state of the world in which something was refused.
type refusal struct {
	pool            disruptionpolicy.NodePool
	settings        disruptionpolicy.Settings
	resourceVersion string
	at              time.Time
}

// NewGate makes a gate.
func NewGate(o Options) *PolicyGate {
	return &PolicyGate{Options: o, memory: memory{client: o.Client, live: o.Live, namespace: o.Namespace},
		deciding: make(chan struct{}, 1)}
}

// beginDecision waits until no other decision is made. The returned context ends a decision that takes too long; end must
// be called after the decision.
func (g *PolicyGate) beginDecision(ctx context.Context) (decision context.Context, end func(), err error) {
	select {
	case g.deciding <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for another decision about disruptions: %w", context.Cause(ctx))
	}
	decision, cancel := context.WithTimeout(ctx, decisionTimeout)
	return decision, func() {
		cancel()
		<-g.deciding
	}, nil
}

// Acquire implements Gate.
func (g *PolicyGate) Acquire(ctx context.Context, request disruptionpolicy.Request) (decision disruptionpolicy.Decision,
	err error) {
	ctx, end, err := g.beginDecision(ctx)
	if err != nil {
		return disruptionpolicy.Decision{}, err
	}
	defer end()
	if request.Configuration == "" {
		request.Configuration = g.configuration()
	}
	if decision, refused := g.refuse(ctx, request); refused {
		return decision, nil
	}
	err = queue.Retry(conflictBackoff, overtaken, func() error {
		decision, err = g.decide(ctx, request)
		return err
	})
	if err != nil {
		return disruptionpolicy.Decision{}, fmt.Errorf("decide whether the node of WindowsInstance %s may be disrupted: %w",
			request.Instance, err)
	}
	return decision, nil
}

// overtaken reports whether a write came too late: the object was written, deleted or made by another.
func overtaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// refuse answers from the last refusal.
func (g *PolicyGate) refuse(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, bool) {
	now := g.Clock.Now()
	if age := now.Sub(g.refused.at); age < 0 || age >= refusalLife {
		return disruptionpolicy.Decision{}, false
	}
	known, err := g.memory.latest(ctx)
	if err != nil || known == nil || known.ResourceVersion != g.refused.resourceVersion {
		return disruptionpolicy.Decision{}, false
	}
	decision := disruptionpolicy.Allow(g.refused.pool, request, g.refused.settings, now)
	return decision, !decision.Allowed
}

// decide decides once, and writes what it has allowed.
func (g *PolicyGate) decide(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error) {
	book, err := g.open(ctx)
	if err != nil {
		return disruptionpolicy.Decision{}, err
	}
	own := book.counting(request)
	if own != nil && (own.Machine != "") == request.Replaces && disruptionpolicy.GoesOn(*own, request) {
		return disruptionpolicy.Decision{Decision: policy.Decision{Allowed: true}}, g.goOn(ctx, book, own, request)
	}
	if own != nil && !request.Replaces {
		// Its entry stands for the Machine that is missed, and stays.
		if going, err := g.machineGoing(ctx, own.Machine); err != nil || going {
			return disruptionpolicy.Decision{Decision: machineGoes(request.Instance)}, err
		}
	}
	if own != nil {
		book.remove(*own) // what it was not begun for is decided on anew
	}
	if err := book.read(ctx); err != nil {
		return disruptionpolicy.Decision{}, err
	}
	entry, refused := book.draft(request)
	if refused.Reason != "" {
		return disruptionpolicy.Decision{Decision: refused}, nil
	}
	decision := disruptionpolicy.Allow(book.situation.pool, request, book.settings, book.now)
	if !decision.Allowed {
		if own == nil {
			g.refused = refusal{pool: book.situation.pool, settings: book.settings, resourceVersion: book.policy.ResourceVersion, at: book.now}
		}
		return decision, nil
	}
	book.enter(entry)
	if err := book.write(ctx); err != nil {
		return disruptionpolicy.Decision{}, err
	}
	metric.DisruptionsStarted.Of(string(entry.Cause)).Inc()
	recorder.Emit(g.Events, started(book.policy, book.situation.Instance(entry.Instance), entry))
	return decision, nil
}

// takeOver makes a disruption that goes on one of this process, and of the version that it is for now.
func (g *PolicyGate) takeOver(ctx context.Context, book *book, own *v1alpha1.Disruption,
	request disruptionpolicy.Request) error {
	after := *own
	after.HolderIdentity = g.Operator
	// A node that does not work does so because it is being changed; and an upgrade is one to its end, whatever is done on
	// the way.
	upgraded := own.Cause == v1alpha1.CauseUpgrade && own.Version == request.Version &&
		request.Cause != v1alpha1.CauseRemoval
	if request.Cause != v1alpha1.CauseRepair && !upgraded {
		after.Cause, after.Version = request.Cause, request.Version
	}
	if after == *own {
		return nil
	}
	*own = after
	return book.write(ctx)
}

// Release implements Gate.
func (g *PolicyGate) Release(ctx context.Context, instance string) error {
	known, err := g.memory.latest(ctx)
	if err != nil || known == nil {
		return err
	}
	ctx, end, err := g.beginDecision(ctx)
	if err != nil {
		return err
	}
	defer end()
	ours := func(d v1alpha1.Disruption) bool {
		return d.Instance == instance && (d.HolderIdentity == g.Operator || !g.looked)
	}
	if !slices.ContainsFunc(known.Status.Disruptions, ours) {
		return nil
	}
	err = queue.Retry(conflictBackoff, overtaken, func() error {
		book, err := g.open(ctx)
		if err != nil {
			return err
		}
		if book.fresh || !g.looked {
			if err := book.read(ctx); err != nil {
				return err
			}
		}
		i := slices.IndexFunc(book.policy.Status.Disruptions, ours)
		if i < 0 {
			g.memory.keep(book.policy)
			return nil
		}
		entry := book.policy.Status.Disruptions[i]
		if going, err := g.machineGoing(ctx, entry.Machine); err != nil || going {
			return err
		}
		book.remove(entry)
		return book.write(ctx)
	})
	if err != nil {
		return fmt.Errorf("record the end of the disruption of WindowsInstance %s: %w", instance, err)
	}
	return nil
}

// machineGoing reports whether a Machine is gone or being deleted; false for no Machine.
func (g *PolicyGate) machineGoing(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	machine := &machinev1beta1.Machine{}
	err := g.Live.Get(ctx, types.NamespacedName{Namespace: v1alpha1.MachineNamespace, Name: name}, machine)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // not the answer of a server without Machines
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Machine %s: %w", name, err)
	}
	return going(machine), nil
}

// Holds implements Gate.
func (g *PolicyGate) Holds(ctx context.Context, instance string) (bool, error) {
	known, err := g.memory.latest(ctx)
	if err != nil || known == nil {
		return false, err
	}
	return slices.ContainsFunc(known.Status.Disruptions, func(d v1alpha1.Disruption) bool {
		return d.Instance == instance && d.Machine == ""
	}), nil
}

// Settings implements Gate.
func (g *PolicyGate) Settings(ctx context.Context) (disruptionpolicy.Settings, error) {
	known, err := g.memory.latest(ctx)
	if err != nil {
		return disruptionpolicy.Settings{}, err
	}
	if known == nil {
		known = &v1alpha1.WindowsDisruptionPolicy{}
	}
	settings, _ := disruptionpolicy.Parse(known.Spec) // the condition Valid tells of what is wrong
	return settings, nil
}
