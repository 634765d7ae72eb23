package fakemachineapi

import (
	"context"
	"fmt"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// healthCheckReconciler deletes Machines that are unhealthy according to a MachineHealthCheck. R-049
type healthCheckReconciler struct{ base }

func (r *healthCheckReconciler) setUp(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.requestsForAll)
	return ctrl.NewControllerManagedBy(mgr).Named("machinehealthcheck").
		For(&machinev1.MachineHealthCheck{}).
		Watches(&machinev1.Machine{}, all).
		Watches(&corev1.Node{}, all).
		WithOptions(r.controllerOptions(1)).
		Complete(r)
}

func (r *healthCheckReconciler) requestsForAll(ctx context.Context, _ client.Object) []reconcile.Request {
	checks := &machinev1.MachineHealthCheckList{}
	if err := r.List(ctx, checks); err != nil {
		return nil // The cache has stopped.
	}
	requests := make([]reconcile.Request, len(checks.Items))
	for i := range checks.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&checks.Items[i])
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *healthCheckReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	check := &machinev1.MachineHealthCheck{}
	if err := r.Get(ctx, request.NamespacedName, check); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	if err != nil {
		r.events.Eventf(check, nil, corev1.EventTypeWarning, "ReconcileError", "Reconcile",
			"spec.selector is invalid: %s", err)
		return reconcile.Result{}, nil
	}
	machines, err := r.listMachines(ctx, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return reconcile.Result{}, err
	}
	found, err := r.examineMachines(ctx, check, machines)
	if err != nil {
		return reconcile.Result{}, err
	}
	allowed, err := r.updateStatus(ctx, check, len(machines), found.healthy)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !allowed {
		return reconcile.Result{RequeueAfter: stableInterval}, nil
	}
	for _, m := range found.unhealthy {
		if err := r.remediateMachine(ctx, check, m); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: found.next}, nil
}

// findings are the results of a check.
type findings struct {
	healthy   int
	unhealthy []*machinev1.Machine
	// next is the time after which a Machine may become unhealthy without any change; 0 for never.
	next time.Duration
}

func (r *healthCheckReconciler) examineMachines(ctx context.Context, check *machinev1.MachineHealthCheck,
	machines []machinev1.Machine) (findings, error) {
	var found findings
	for i := range machines {
		m := &machines[i]
		node, err := r.nodeOf(ctx, m)
		if err != nil {
			return found, err
		}
		reason, wait := unhealthyReason(check, m, node, r.Clock.Now())
		switch {
		case reason != "":
			found.unhealthy = append(found.unhealthy, m)
			r.Logger.Info("a Machine is unhealthy", "check", check.Name, "machine", m.Name, "why", reason)
		case wait > 0 && m.Status.NodeRef != nil:
			r.events.Eventf(m, nil, corev1.EventTypeNormal, "DetectedUnhealthy", "Examine", "Machine %s has unhealthy node %s",
				m.Name, m.Status.NodeRef.Name)
		case wait == 0 && m.DeletionTimestamp.IsZero():
			found.healthy++
		}
		if wait > 0 && (found.next == 0 || wait < found.next) {
			found.next = wait
		}
	}
	return found, nil
}

// updateStatus writes the status and returns whether Machines may be remediated.
func (r *healthCheckReconciler) updateStatus(ctx context.Context, check *machinev1.MachineHealthCheck, expected,
	healthy int) (bool, error) {
	before := check.DeepCopy()
	limit, err := maxUnhealthy(check.Spec.MaxUnhealthy, expected)
	left := limit - (expected - healthy)
	allowed := err == nil && left >= 0
	check.Status.ExpectedMachines, check.Status.CurrentHealthy = ptr.To(expected), ptr.To(healthy)
	check.Status.RemediationsAllowed = int32(max(left, 0))
	condition := trueCondition(machinev1.RemediationAllowedCondition, "")
	if !allowed {
		message := fmt.Sprintf("Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy"+
			" (total: %d, unhealthy: %d, maxUnhealthy: %d)", expected, expected-healthy, limit)
		if err != nil {
			message = err.Error()
		}
		condition = falseCondition(machinev1.RemediationAllowedCondition, machinev1.ConditionSeverityWarning,
			machinev1.TooManyUnhealthyReason, message)
		r.events.Eventf(check, nil, corev1.EventTypeWarning, "RemediationRestricted", "Remediate", "%s", message)
	}
	setCondition(&check.Status.Conditions, r.Clock.Now(), condition)
	if equality.Semantic.DeepEqual(before.Status, check.Status) {
		return allowed, nil
	}
	return allowed, client.IgnoreNotFound(r.Status().Patch(ctx, check, client.MergeFrom(before)))
}

// remediateMachine deletes a Machine if a controller will replace it.
func (r *healthCheckReconciler) remediateMachine(ctx context.Context, check *machinev1.MachineHealthCheck,
	m *machinev1.Machine) error {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	if check.Spec.RemediationTemplate != nil {
		r.events.Eventf(check, nil, corev1.EventTypeWarning, "RemediationSkipped", "Remediate",
			"remediation by a template is not simulated")
		return nil
	}
	if metav1.GetControllerOf(m) == nil {
		r.events.Eventf(m, nil, corev1.EventTypeNormal, "SkippedNoController", "Remediate",
			"Machine %s has no controller owner, skipping remediation", m.Name)
		return nil
	}
	if err := ignoreGone(r.Delete(ctx, m, client.Preconditions{UID: &m.UID})); err != nil {
		return fmt.Errorf("delete the unhealthy Machine %s: %w", m.Name, err)
	}
	r.events.Eventf(m, nil, corev1.EventTypeNormal, "MachineDeleted", "Remediate",
		"Machine %s has been remediated by requesting to delete Machine object", m.Name)
	return nil
}
