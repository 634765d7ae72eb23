// Package disruption is the single gate for every disruption of a Windows node, for any cause.
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
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// Gate lets controllers disrupt nodes. A disruption is allowed only after a read of the API server, and is written to
// the status of the WindowsDisruptionPolicy before Acquire returns. If two writes conflict, the later decision is
// repeated.
type Gate interface {
	// Acquire requests a disruption slot for a node. If the node is already disrupted for the same instance, the
	// request is allowed at once, as far as disruptionpolicy.IsContinuation permits. This process then holds the
	// slot.
	Acquire(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error)
	// Release ends the disruption of an instance's node, if this process holds the slot. Disruptions from before
	// the first review of this process count as held. If there is nothing to release, Release sends no request.
	// Once a Machine is being deleted, Release does not end its replacement; only a working successor does.
	Release(ctx context.Context, instance string) error
	// Holds reports, from memory, whether any process is disrupting the node of the instance in place, without
	// replacing the Machine.
	Holds(ctx context.Context, instance string) (bool, error)
	// Settings returns the effective settings. Invalid settings of an administrator have their defaults.
	Settings(ctx context.Context) (disruptionpolicy.Settings, error)
}

// refusalTTL is the maximum age of a refusal that is reused for other requests while the policy is unchanged. Of a
// hundred waiting nodes, only one causes a read of the complete cluster. A node is never allowed based on the read
// for another node.
const refusalTTL = 5 * time.Second

// conflictBackoff is the backoff for repeating a decision after a write conflict.
var conflictBackoff = wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.6,
	Jitter: 0.5, Cap: time.Second}

// decisionTimeout ends a decision without a response from the API server, because other decisions wait for it.
const decisionTimeout = 30 * time.Second

// Options configure a gate.
type Options struct {
	// Client reads the cache, and writes.
	Client client.Client
	// Live reads the API server.
	Live client.Reader
	// Namespace is the namespace of the operator.
	Namespace string
	// Version is the version of the operator.
	Version string
	// Operator identifies this process.
	Operator string
	// Configuration returns the desired settings of all nodes: see nodespec.Configuration. The result is empty if
	// the settings are unknown, and the function is nil if they cannot be known.
	Configuration func() string
	Events        events.EventRecorder
	Clock         clock.PassiveClock
}

// PolicyGate is a Gate that implements the WindowsDisruptionPolicy. It is safe for concurrent use, and any number
// of processes may have one.
type PolicyGate struct {
	Options
	cache policyCache
	// reviewed is the resource version that the last review has read or written.
	reviewed atomic.Value

	// deciding holds a token while this process makes a decision. Concurrent decisions would only conflict.
	// deciding guards the fields below.
	deciding chan struct{}
	// initialized is true once this process has read all nodes, has adopted the disruptions of former processes, and has
	// written the result.
	initialized bool
	// lingering contains the disruptions of other processes with nodes in service, and when this process first
	// observed this.
	lingering map[disruptionID]time.Time
	// refused is the basis of the last refusal.
	refused refusal
	// failed are the disruptions that are reported as failed.
	failed recorder.Once[disruptionID]
}

var _ Gate = (*PolicyGate)(nil)

// refusal is a state of the cluster that led to a refusal.
type refusal struct {
	pool            disruptionpolicy.NodePool
	settings        disruptionpolicy.Settings
	resourceVersion string
	at              time.Time
}

// NewGate returns a gate.
func NewGate(o Options) *PolicyGate {
	return &PolicyGate{Options: o, cache: policyCache{client: o.Client, live: o.Live, namespace: o.Namespace},
		deciding: make(chan struct{}, 1)}
}

// beginDecision waits until no other decision is being made. The returned context ends a decision that takes too
// long. The caller must call end after the decision.
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
		request.Configuration = g.desiredConfiguration()
	}
	if decision, refused := g.reuseRefusal(ctx, request); refused {
		return decision, nil
	}
	err = queue.Retry(conflictBackoff, isConflict, func() error {
		decision, err = g.decideOnce(ctx, request)
		return err
	})
	if err != nil {
		return disruptionpolicy.Decision{}, fmt.Errorf("decide whether the node of WindowsInstance %s may be disrupted: %w",
			request.Instance, err)
	}
	return decision, nil
}

// isConflict reports whether a write conflicted: another client has written, deleted or created the object.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// reuseRefusal reuses the last refusal, if it is still valid.
func (g *PolicyGate) reuseRefusal(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, bool) {
	now := g.Clock.Now()
	if age := now.Sub(g.refused.at); age < 0 || age >= refusalTTL {
		return disruptionpolicy.Decision{}, false
	}
	known, err := g.cache.latestPolicy(ctx)
	if err != nil || known == nil || known.ResourceVersion != g.refused.resourceVersion {
		return disruptionpolicy.Decision{}, false
	}
	decision := disruptionpolicy.Allow(g.refused.pool, request, g.refused.settings, now)
	return decision, !decision.Allowed
}

// decideOnce makes one decision, and writes an allowed disruption.
func (g *PolicyGate) decideOnce(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error) {
	book, err := g.beginUpdate(ctx)
	if err != nil {
		return disruptionpolicy.Decision{}, err
	}
	own := book.activeDisruption(request)
	if own != nil && (own.Machine != "") == request.Replaces && disruptionpolicy.IsContinuation(*own, request) {
		return disruptionpolicy.Decision{Decision: policy.Decision{Allowed: true}}, g.resumeDisruption(ctx, book, own, request)
	}
	if own != nil && !request.Replaces {
		// The entry counts the missing Machine, and must stay.
		if going, err := g.isMachineDeleting(ctx, own.Machine); err != nil || going {
			return disruptionpolicy.Decision{Decision: machineDeleting(request.Instance)}, err
		}
	}
	if own != nil {
		book.removeDisruption(*own) // a request for another purpose needs a new decision
	}
	if err := book.read(ctx); err != nil {
		return disruptionpolicy.Decision{}, err
	}
	entry, refused := book.newDisruption(request)
	if refused.Reason != "" {
		return disruptionpolicy.Decision{Decision: refused}, nil
	}
	decision := disruptionpolicy.Allow(book.state.pool, request, book.settings, book.now)
	if !decision.Allowed {
		if own == nil {
			g.refused = refusal{pool: book.state.pool, settings: book.settings, resourceVersion: book.policy.ResourceVersion, at: book.now}
		}
		return decision, nil
	}
	book.addDisruption(entry)
	if err := book.write(ctx); err != nil {
		return disruptionpolicy.Decision{}, err
	}
	metrics.DisruptionsStarted.Of(string(entry.Cause)).Inc()
	recorder.Emit(g.Events, disruptionStarted(book.policy, book.state.Instance(entry.Instance), entry))
	return decision, nil
}

// adoptDisruption assigns a continuing disruption to this process, with its current cause and version.
func (g *PolicyGate) adoptDisruption(ctx context.Context, book *policyUpdate, own *v1alpha1.Disruption,
	request disruptionpolicy.Request) error {
	after := *own
	after.HolderIdentity = g.Operator
	// A node that is not ready may be so because of the change itself. An upgrade remains an upgrade until its end,
	// regardless of intermediate steps.
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
	known, err := g.cache.latestPolicy(ctx)
	if err != nil || known == nil {
		return err
	}
	ctx, end, err := g.beginDecision(ctx)
	if err != nil {
		return err
	}
	defer end()
	ours := func(d v1alpha1.Disruption) bool {
		return d.Instance == instance && (d.HolderIdentity == g.Operator || !g.initialized)
	}
	if !slices.ContainsFunc(known.Status.Disruptions, ours) {
		return nil
	}
	err = queue.Retry(conflictBackoff, isConflict, func() error {
		book, err := g.beginUpdate(ctx)
		if err != nil {
			return err
		}
		if book.statusMissing || !g.initialized {
			if err := book.read(ctx); err != nil {
				return err
			}
		}
		i := slices.IndexFunc(book.policy.Status.Disruptions, ours)
		if i < 0 {
			g.cache.storePolicy(book.policy)
			return nil
		}
		entry := book.policy.Status.Disruptions[i]
		if going, err := g.isMachineDeleting(ctx, entry.Machine); err != nil || going {
			return err
		}
		book.removeDisruption(entry)
		return book.write(ctx)
	})
	if err != nil {
		return fmt.Errorf("record the end of the disruption of WindowsInstance %s: %w", instance, err)
	}
	return nil
}

// isMachineDeleting reports whether a Machine is missing or being deleted; false for no Machine.
func (g *PolicyGate) isMachineDeleting(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	machine := &machinev1beta1.Machine{}
	err := g.Live.Get(ctx, types.NamespacedName{Namespace: v1alpha1.MachineNamespace, Name: name}, machine)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // a server without the Machine API responds differently
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Machine %s: %w", name, err)
	}
	return isDeleting(machine), nil
}

// Holds implements Gate.
func (g *PolicyGate) Holds(ctx context.Context, instance string) (bool, error) {
	known, err := g.cache.latestPolicy(ctx)
	if err != nil || known == nil {
		return false, err
	}
	return slices.ContainsFunc(known.Status.Disruptions, func(d v1alpha1.Disruption) bool {
		return d.Instance == instance && d.Machine == ""
	}), nil
}

// Settings implements Gate.
func (g *PolicyGate) Settings(ctx context.Context) (disruptionpolicy.Settings, error) {
	known, err := g.cache.latestPolicy(ctx)
	if err != nil {
		return disruptionpolicy.Settings{}, err
	}
	if known == nil {
		known = &v1alpha1.WindowsDisruptionPolicy{}
	}
	settings, _ := disruptionpolicy.Parse(known.Spec) // the condition Valid reports violations
	return settings, nil
}
