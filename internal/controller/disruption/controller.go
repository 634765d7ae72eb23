package disruption

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// Machines are in another namespace than the operator. Only a ClusterRole can grant access there.
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsdisruptionpolicies,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsdisruptionpolicies/status,verbs=update
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

const (
	// rereadInterval is the interval between reconciles without an event: a watch may miss a change, and the API
	// server may have been replaced.
	rereadInterval = 10 * time.Minute
	// runningInterval is the same interval while nodes are disrupted, because all other nodes may be waiting for
	// them.
	runningInterval = 30 * time.Second
)

// Reconciler maintains the WindowsDisruptionPolicy. It ensures that the policy exists, writes the progress of the
// nodes to the status, and removes ended disruptions.
type Reconciler struct {
	// Gate is the gate of this process.
	Gate *PolicyGate
	// Conditions reports to OLM whether the operator may be replaced.
	Conditions *operatorcondition.Writer
	Clock      clock.WithTicker

	// upgradeable is the last condition reported to OLM.
	upgradeable metav1.Condition
	// lastReviewDuration is the duration of the last review, in nanoseconds.
	lastReviewDuration atomic.Int64
	// controller accepts additional watches while it runs.
	controller controller.Controller
}

// Reconcile reviews the complete fleet once, and writes the differences.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	begun := r.Clock.Now()
	book, err := r.Gate.reviewPolicy(ctx)
	r.lastReviewDuration.Store(int64(r.Clock.Since(begun)))
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // no object can be created in a terminating namespace
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	pool := book.state.pool
	pool.Disruptions = book.policy.Status.Disruptions
	setMetrics(book)
	if err := r.reportUpgradeable(ctx, book, pool); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: nextReviewDelay(book)}, nil
}

// reviewPolicy updates the status of the policy from the other objects in the API server.
func (g *PolicyGate) reviewPolicy(ctx context.Context) (reviewed *policyUpdate, err error) {
	ctx, end, err := g.beginDecision(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	err = queue.Retry(conflictBackoff, isConflict, func() error {
		book, err := g.beginUpdate(ctx)
		if err != nil {
			return err
		}
		if err := book.read(ctx); err != nil {
			return err
		}
		reviewed = book
		if err := book.write(ctx); err != nil {
			return err
		}
		g.reviewed.Store(book.policy.ResourceVersion)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("update WindowsDisruptionPolicy %s: %w", v1alpha1.DisruptionPolicyName, err)
	}
	return reviewed, nil
}

// setMetrics sets the metrics of the current state.
func setMetrics(b *policyUpdate) {
	status := b.policy.Status
	metrics.NodesDisrupted.Set(float64(len(status.Disruptions) - countFailed(b)))
	metrics.NodesOutdated.Set(float64(status.Nodes - status.Updated))
	if stopped := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStopped); stopped != nil {
		metrics.UpgradeStopped.Set(stopped.Status == metav1.ConditionTrue, stopped.Reason)
	}
}

// countFailed counts the disruptions on the list that have failed.
func countFailed(b *policyUpdate) (n int) {
	for _, d := range b.policy.Status.Disruptions {
		for _, failed := range b.failed {
			if idOf(failed.Disruption) == idOf(d) {
				n++
			}
		}
	}
	return n
}

// nextReviewDelay returns the time until the status may change without an event.
func nextReviewDelay(b *policyUpdate) time.Duration {
	after := rereadInterval
	if len(b.policy.Status.Disruptions) > countFailed(b) {
		after = runningInterval
	}
	if b.summary.After > 0 {
		after = min(after, b.summary.After)
	}
	for _, d := range b.policy.Status.Disruptions {
		if left := d.Since.Add(b.settings.FailureDeadline).Sub(b.now); left > 0 {
			after = min(after, left)
		}
	}
	return max(after, time.Second)
}

// reportUpgradeable reports to OLM whether the operator may be replaced, if this has changed.
func (r *Reconciler) reportUpgradeable(ctx context.Context, b *policyUpdate, pool disruptionpolicy.NodePool) error {
	decision := disruptionpolicy.Upgradeable(pool, b.settings, b.now)
	condition := metav1.Condition{
		Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: cmp.Or(decision.Reason,
			v1alpha1.ReasonSucceeded), Message: decision.Message,
	}
	if !decision.Allowed {
		condition.Status = metav1.ConditionFalse
	}
	if condition == r.upgradeable {
		return nil
	}
	if err := r.Conditions.Set(ctx, condition); err != nil {
		return err
	}
	r.upgradeable = condition
	return nil
}
