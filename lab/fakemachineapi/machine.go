package fakemachineapi

import (
	"context"
	"fmt"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// machineReconciler creates the virtual machine of each Machine, links the Node, and removes both before the
// Machine is deleted.
type machineReconciler struct {
	base
	clientset kubernetes.Interface
}

func (r *machineReconciler) setUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("machine").
		For(&machinev1.Machine{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf)).
		WithOptions(r.controllerOptions(r.Workers)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *machineReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &machinev1.Machine{}
	if err := r.Get(ctx, request.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return r.deleteMachine(ctx, m)
	}
	if currentPhase(m) == machinev1.PhaseFailed {
		return reconcile.Result{}, nil // A failed Machine is never retried and must be deleted.
	}
	// The finalizer must exist before any resource is created that needs cleanup.
	before := m.DeepCopy()
	if controllerutil.AddFinalizer(m, machinev1.MachineFinalizer) {
		if err := r.saveMachine(ctx, before, m); err != nil {
			return reconcile.Result{}, err
		}
	}
	spec, err := readProviderSpec(r.Platform, m.Spec.ProviderSpec.Value)
	if err != nil {
		return reconcile.Result{}, r.setFailed(ctx, m, machinev1.InvalidConfigurationMachineError, err.Error())
	}
	return r.actuateMachine(ctx, m, spec)
}

// actuateMachine creates the virtual machine if it does not exist, and records the state.
func (r *machineReconciler) actuateMachine(ctx context.Context, m *machinev1.Machine, spec providerSpec) (reconcile.Result,
	error) {
	id := instanceID(r.Platform, m.UID)
	vm, found, err := r.Cloud.Describe(ctx, id)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("ask the cloud for the virtual machine %s of %s: %w", id, m.Name, err)
	}
	if !found && isProvisioned(m) {
		return reconcile.Result{}, r.failLost(ctx, m)
	}
	if !found {
		if outdated, err := r.isOutdated(ctx, m); err != nil || outdated {
			return reconcile.Result{}, err // cache updates cause their own request
		}
		if err := r.provisionMachine(ctx, m, spec, id); err != nil {
			return reconcile.Result{}, err
		}
		if currentPhase(m) == machinev1.PhaseFailed {
			return reconcile.Result{}, nil
		}
		if vm, found, err = r.Cloud.Describe(ctx, id); err != nil || !found {
			return reconcile.Result{RequeueAfter: pendingInterval}, err
		}
	}
	return r.recordState(ctx, m, spec, id, vm)
}

// isOutdated reads the API server to check whether no virtual machine must be created for the Machine. The
// cache may still contain a deleted Machine, and a new virtual machine would leak. It may also contain a
// version without the recorded virtual machine, which must not be recreated.
func (r *machineReconciler) isOutdated(ctx context.Context, m *machinev1.Machine) (bool, error) {
	now := &machinev1.Machine{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(m), now)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Machine %s: %w", m.Name, err)
	}
	return now.UID != m.UID || !now.DeletionTimestamp.IsZero() || isProvisioned(now), nil
}

// recordState records the state of the virtual machine and links the Machine to its Node.
func (r *machineReconciler) recordState(
	ctx context.Context, m *machinev1.Machine, spec providerSpec, id string, vm VirtualMachineStatus,
) (reconcile.Result, error) {
	before := m.DeepCopy()
	if vm.ProviderID == "" {
		vm.ProviderID = providerID(r.Platform, m.Name, id, spec)
	}
	r.applyVMStatus(m, spec, id, vm)
	node, err := r.findNode(ctx, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	if node != nil {
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: node.UID}
	}
	now := phaseOf(m)
	m.Status.Phase = ptr.To(now)
	if err := r.saveMachine(ctx, before, m); err != nil {
		return reconcile.Result{}, err
	}
	if currentPhase(before) != now {
		r.Logger.Info("a Machine goes on", "machine", m.Name, "phase", now)
	}
	if node != nil {
		if err := r.syncNodeMetadata(ctx, m, node); err != nil {
			return reconcile.Result{}, err
		}
	}
	if now == machinev1.PhaseProvisioning || vm.State == Pending {
		return reconcile.Result{RequeueAfter: pendingInterval}, nil
	}
	return reconcile.Result{RequeueAfter: stableInterval}, nil
}

// phaseOf returns the phase of a Machine with an existing virtual machine.
func phaseOf(m *machinev1.Machine) string {
	switch {
	case m.Status.NodeRef != nil:
		return machinev1.PhaseRunning
	case len(m.Status.Addresses) > 0:
		return machinev1.PhaseProvisioned
	default:
		return machinev1.PhaseProvisioning
	}
}

// isProvisioned reports whether the virtual machine was recorded, so that it must not be recreated.
func isProvisioned(m *machinev1.Machine) bool {
	return ptr.Deref(m.Spec.ProviderID, "") != "" || len(m.Status.Addresses) > 0
}

// failLost sets a Machine to Failed after its virtual machine was deleted outside the Machine API.
func (r *machineReconciler) failLost(ctx context.Context, m *machinev1.Machine) error {
	message := "Can't find created instance."
	return r.setFailed(ctx, m, machinev1.UpdateMachineError, message, falseCondition(
		machinev1.InstanceExistsCondition, machinev1.ConditionSeverityWarning, machinev1.InstanceMissingReason, message))
}

// setFailed sets a Machine to Failed permanently.
func (r *machineReconciler) setFailed(
	ctx context.Context, m *machinev1.Machine, reason machinev1.MachineStatusError, message string,
	conditions ...machinev1.Condition,
) error {
	before := m.DeepCopy()
	for _, c := range conditions {
		setCondition(&m.Status.Conditions, r.Clock.Now(), c)
	}
	m.Annotations = mergeMaps(m.Annotations, map[string]string{annotationInstanceState: "Unknown"})
	m.Status.Phase = ptr.To(machinev1.PhaseFailed)
	m.Status.ErrorReason, m.Status.ErrorMessage = &reason, &message
	if err := r.saveMachine(ctx, before, m); err != nil {
		return err
	}
	r.Logger.Info("a Machine failed", "machine", m.Name, "reason", reason, "message", message)
	r.events.Eventf(m, nil, corev1.EventTypeWarning, "Failed", "Reconcile", "%s: %s", reason, message)
	return nil
}
